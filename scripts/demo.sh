#!/usr/bin/env bash
# scripts/demo.sh [--seconds N] [--log FILE] [--json FILE] [more of the ad server's options; --help]: the whole path, live.
# Starts what is not running yet (servers, updater), serves impressions, and ends all that it started.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"
source "$FCAP_ROOT/scripts/lib/process.sh"
source "$FCAP_ROOT/scripts/lib/build.sh"
source "$FCAP_ROOT/scripts/lib/dev_servers.sh"

DEMO_DIR=$FCAP_DEV_DIR/demo
# A developer's build, which has tests as well, serves too: nothing is built twice.
PRESET=demo
if configured_here "$(build_dir release)"; then PRESET=release; fi
BUILD=$(build_dir "$PRESET")
UPDATER=$BUILD/updater/fcap-updater
AD_SERVER=$BUILD/examples/ad_server/fcap-example-ad-server
FCAP=$BUILD/cli/fcap
SERVED=$DEMO_DIR/served.json   # what the ad server says of its run
AUDITED=$DEMO_DIR/audited.json # what Kafka and Redis say of it

# Orderly, and whatever was the reason: the updater first (it drains into Redis), then the servers that this run
# has started. Servers of an earlier ./dev up stay.
finish() {
  local code=$?
  trap '' INT TERM HUP
  if [[ -n ${AD_SERVER_PID:-} ]]; then kill -TERM "$AD_SERVER_PID" 2>/dev/null || true; fi
  if [[ -n ${UPDATER_PID:-} ]] && kill -TERM "$UPDATER_PID" 2>/dev/null; then
    wait_gone "$UPDATER_PID" "$UPDATER_TICKS" 30 || kill -KILL "$UPDATER_PID" 2>/dev/null || true
  fi
  if ((${#DEV_STARTED[@]})); then dev_servers_down "${DEV_STARTED[@]}" || true; fi
  end_marked_processes 5 || true
  exit "$code"
}

write_updater_config() {
  cat >"$DEMO_DIR/updater.json" <<JSON
{
  // Written by ./dev demo; what is not here has its default (fcap-updater reference sample).
  "kafka": {
    "brokers": ["127.0.0.1:$FCAP_KAFKA_PORT"],
    "topic": "impressions",
    "dead_letter_topic": "impressions.dead"
  },
  "redis": { "addresses": ["127.0.0.1:$FCAP_REDIS_PORT"] },
  "postgres": { "conninfo": "$DEV_CONNINFO" },
  "rules": { "snapshot_file": "$DEMO_DIR/rules.snapshot" },
  "http": { "port": 0 }
}
JSON
}

# An updater of an earlier demo that was killed hard cannot be there any more: it carried that run's mark.
start_updater() {
  local deadline=$((SECONDS + 30)) url=
  : >"$DEMO_DIR/updater.log"
  "$UPDATER" run --config "$DEMO_DIR/updater.json" </dev/null >>"$DEMO_DIR/updater.log" 2>&1 &
  UPDATER_PID=$!
  UPDATER_TICKS=$(process_start_ticks "$UPDATER_PID") || true
  while true; do
    if ! process_alive "$UPDATER_PID" "$UPDATER_TICKS"; then
      tail -n 20 "$DEMO_DIR/updater.log" >&2
      die "fcap-updater ended at once (see above; $DEMO_DIR/updater.log)"
    fi
    # The port is chosen freely, and named in the log.
    url=$(grep -oE 'http://[0-9.]+:[0-9]+' "$DEMO_DIR/updater.log" | head -n 1 || true)
    if [[ -n $url ]] && curl -fsS -m 2 -o /dev/null "$url/readyz" 2>/dev/null; then break; fi
    ((SECONDS < deadline)) || {
      tail -n 20 "$DEMO_DIR/updater.log" >&2
      die "fcap-updater was not ready within 30 s (see above)"
    }
    nap 0.05
  done
  say "updater   $url/metrics  log $DEMO_DIR/updater.log"
}

# In the background and waited for, so that Ctrl-C and SIGTERM reach our trap at once.
run_ad_server() {
  local code=0
  "$AD_SERVER" --redis "127.0.0.1:$FCAP_REDIS_PORT" --postgres "$DEV_CONNINFO" \
    --brokers "127.0.0.1:$FCAP_KAFKA_PORT" --topic impressions "$@" </dev/null &
  AD_SERVER_PID=$!
  wait "$AD_SERVER_PID" || code=$?
  AD_SERVER_PID=
  return "$code"
}

# The campaigns of a log, three times in 24 hours each, so that there is something to cap.
load_log_campaigns() {
  local log=$1
  gzip -cdf -- "$log" | awk -F, 'NR > 1 && !seen[$2]++ { print $2 }' |
    psql -qX -v ON_ERROR_STOP=1 "$DEV_CONNINFO" -c "
      CREATE TEMP TABLE log_campaigns (id text)" -c "COPY log_campaigns FROM STDIN" -c "
      INSERT INTO campaigns (id, cap_limit, window_seconds)
      SELECT id, 3, 86400 FROM log_campaigns ON CONFLICT (id) DO NOTHING"
}

# Compares the topic with the ledgers, for the users of this run. Exit code 1: something is lost or double.
audit() {
  local offsets
  offsets() { jq -r --arg at "$1" '.[$at] | map(tostring) | join(",")' "$SERVED"; }
  "$FCAP" audit --json --redis "127.0.0.1:$FCAP_REDIS_PORT" --postgres "$DEV_CONNINFO" \
    --brokers "127.0.0.1:$FCAP_KAFKA_PORT" --topic impressions \
    --user-prefix "$(jq -r .user_prefix "$SERVED")" \
    --from-offsets "$(offsets begin_offsets)" --to-offsets "$(offsets end_offsets)" >"$AUDITED"
}

print_summary() {
  jq -sr '
    .[0] as $served | .[1] as $audited |
    "",
    "What Kafka holds, against what Redis counts",
    "  produced   \($audited.produced) impressions",
    "  counted    \($audited.counted) entries in \($audited.users) ledgers: \($audited.lost) lost, \($audited.double) double",
    "  over cap   \($audited.over_cap)" +
      (if $audited.over_cap == 0 then "" else
        ": \($audited.over_cap_in_flight) shown before the impression that capped them was counted, " +
        "\($audited.over_cap_fail_open) shown fail-open" +
        (if $audited.over_cap_other == 0 then "" else ", \($audited.over_cap_other) for another reason" end) end),
    "",
    "What the ad server saw",
    "  checks     \($served.checks) in \($served.seconds | floor) s, p50 \($served.check_p50_us) us, p99 \($served.check_p99_us) us",
    "  verdicts   \($served.allowed) allowed, \($served.capped) capped",
    "  visible    an impression is seen by a check after \($served.propagation_p50_ms) ms (p50), \($served.propagation_p99_ms) ms (p99)"
  ' "$SERVED" "$AUDITED"
}

# Both sides in one object; the names on both sides are distinct.
write_json() { jq -s '.[0] + .[1]' "$SERVED" "$AUDITED" >"$1"; }

print_help() {
  cat <<'TEXT'
usage: ./dev demo [--seconds N] [--log FILE] [--json FILE] [options]

Builds, starts what is not running yet of Redis, Kafka and PostgreSQL, serves and counts impressions live, then
compares what Kafka holds with what Redis counts. Ends all that it started.

  --seconds N              how long to serve, 1 to 86400 (20)
  --log FILE               serve this impression log (CSV, plain or gzip) instead of synthetic traffic
  --json FILE              also write the summary to this file
  --rate N                 synthetic page views a second, 1 to 1000000 (4000)
  --users N                synthetic users, 1 to 100000000 (2000)
  --threads N              worker threads, 1 to 256 (2)
  --drain-seconds N        how long to wait at the end for the updater to catch up, 0 to 3600 (60)
  --probe-campaign ID      a campaign capped at 1, to measure the delay by; empty: do not (demo-probe)
  --group ID               the updater's consumer group (fcap-updater)
  --note-shown, --no-note-shown
                           whether what was just shown counts before it has come back through Kafka (it does)

Exit codes: 0 all is counted once, 1 something failed or is lost or double, 2 wrong use.
TEXT
}

# check_number OPTION VALUE MIN MAX; a rate may have decimals.
check_number() {
  local pattern='^[0-9]+$'
  [[ $1 != --rate ]] || pattern='^[0-9]+(\.[0-9]+)?$'
  if [[ ! $2 =~ $pattern ]] || ! awk -v n="$2" -v min="$3" -v max="$4" 'BEGIN { exit !(n >= min && n <= max) }'; then
    die_usage "$1: \"$2\" is not a number from $3 to $4"
  fi
}

check_argument() {
  local name=$1 value=$2
  case $name in
    --seconds) check_number "$name" "$value" 1 86400 ;;
    --rate) check_number "$name" "$value" 1 1000000 ;;
    --users) check_number "$name" "$value" 1 100000000 ;;
    --threads) check_number "$name" "$value" 1 256 ;;
    --drain-seconds) check_number "$name" "$value" 0 3600 ;;
    --log) [[ -f $value && -r $value ]] || die_usage "--log: cannot read $value" ;;
    --json)
      [[ ! -d $value ]] || die_usage "--json: $value is a directory"
      if [[ -e $value ]]; then
        [[ -w $value ]] || die_usage "--json: cannot write $value"
      else
        [[ -d $(dirname -- "$value") && -w $(dirname -- "$value") ]] || die_usage "--json: cannot write $value"
      fi
      ;;
  esac
}

# Everything is looked at before anything is built or started. The ad server writes its own summary; --json is the
# demo's.
JSON_FILE='' LOG_FILE='' ARGUMENTS=()
while (($#)); do
  case $1 in
    -h | --help)
      print_help
      exit 0
      ;;
    --note-shown | --no-note-shown)
      ARGUMENTS+=("$1")
      shift
      continue
      ;;
    --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
  esac
  case $1 in
    --seconds | --log | --json | --rate | --users | --threads | --drain-seconds | --probe-campaign | --group) ;;
    *) die_usage "unknown option: $1 (see ./dev demo --help)" ;;
  esac
  (($# > 1)) || die_usage "$1 needs a value"
  check_argument "$1" "$2"
  case $1 in
    --json) JSON_FILE=$2 ;;
    --log) LOG_FILE=$2 ;;
  esac
  [[ $1 == --json ]] || ARGUMENTS+=("$1" "$2")
  shift 2
done

BEGAN=$SECONDS
"$FCAP_ROOT/scripts/packages" build runtime
require_tool curl curl
require_tool jq jq
require_tool psql postgresql-client
build_preset "$PRESET" --target fcap-updater fcap-cli fcap-example-ad-server
say "built in $((SECONDS - BEGAN)) s: $BUILD"
for program in "$UPDATER" "$AD_SERVER" "$FCAP"; do
  [[ -x $program ]] || die "the build made no $program"
done
mkdir -p "$DEMO_DIR"
rm -f "$SERVED" "$AUDITED"

mark_run
DEV_STARTED=()
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
# Whatever this run starts ends with it, even when it is killed.
export FCAP_SERVICE_OWNER=$$

dev_servers_up
dev_servers_print >&2
"$FCAP_ROOT/scripts/migrate" "$DEV_CONNINFO" --sample >&2
write_updater_config
start_updater
if [[ -n $LOG_FILE ]]; then load_log_campaigns "$LOG_FILE"; fi
CODE=0
say "serving, $((SECONDS - BEGAN)) s after the start"
run_ad_server --json "$SERVED" "${ARGUMENTS[@]}" || CODE=$?
[[ -s $SERVED ]] || exit "$CODE"
audit || CODE=1
[[ -s $AUDITED ]] || die "the audit did not finish (see above)"
print_summary
if [[ -n $JSON_FILE ]]; then write_json "$JSON_FILE"; fi
exit "$CODE"
