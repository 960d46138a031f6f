#!/usr/bin/env bash
# scripts/demo.sh [--seconds N] [--log FILE] [--json FILE] [more of the ad server's options]: the whole path, live.
# Starts what is not running yet (servers, updater), serves impressions, and ends all that it started.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"
source "$FCAP_ROOT/scripts/lib/process.sh"
source "$FCAP_ROOT/scripts/lib/build.sh"
source "$FCAP_ROOT/scripts/lib/dev_servers.sh"

DEMO_DIR=$FCAP_DEV_DIR/demo
BUILD=$(build_dir release)
UPDATER=$BUILD/updater/fcap-updater
AD_SERVER=$BUILD/examples/ad_server/fcap-example-ad-server

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
  end_marked_processes 5
  exit "$code"
}

write_updater_config() {
  cat >"$DEMO_DIR/updater.json" <<JSON
{
  // Written by ./dev demo; what is not here has its default (fcap-updater reference sample).
  "kafka": {
    "brokers": ["127.0.0.1:$FCAP_KAFKA_PORT"],
    "topic": "impressions",
    "dead_letter_topic": "impressions.dlq"
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

"$FCAP_ROOT/scripts/packages" build runtime
build_preset release
for program in "$UPDATER" "$AD_SERVER"; do
  [[ -x $program ]] || die "the build made no $program"
done
mkdir -p "$DEMO_DIR"

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
run_ad_server "$@"
