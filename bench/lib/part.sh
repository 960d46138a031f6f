# shellcheck shell=bash
# Shared by the parts that need a Redis and no more: bench/<part>/run sources it. A part's own program takes
# --redis, --json, --users, --seconds, --rounds and --quick; later options win.
set -euo pipefail
BENCH=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ROOT=$(cd "$BENCH/.." && pwd)
BUILD=${FCAP_BUILD_DIR:-$ROOT/build/release}

# Redis has one core, its client another. A machine of one core has them share it.
on_client_core() { if (($(nproc) > 1)); then taskset -c 1 "$@"; else "$@"; fi; }

# An empty Redis that ends with this script; sets REDIS_ADDRESS.
start_redis() {
  PART_DIR=$(mktemp -d "${TMPDIR:-/tmp}/fcap-bench.XXXXXX")
  trap stop_redis EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  "$ROOT/scripts/service" redis start --dir "$PART_DIR" --port 0 --owner $$ >"$PART_DIR/started"
  REDIS_ADDRESS=$(sed -n 's/^address=//p' "$PART_DIR/started")
  if (($(nproc) > 1)); then taskset -apc 0 "$(sed -n 's/^pid=//p' "$PART_DIR/started")" >/dev/null; fi
}
stop_redis() {
  "$ROOT/scripts/service" redis stop --dir "$PART_DIR" >/dev/null 2>&1 || true
  rm -rf "$PART_DIR"
}

# run_part PROGRAM [arguments]: with a Redis of its own. QUICK_ARGUMENTS stand for --quick, FULL_ARGUMENTS for its
# absence; what the caller gives comes after them.
run_part() {
  local program=$1 chosen=("${FULL_ARGUMENTS[@]}") word
  shift
  for word in "$@"; do
    if [[ $word == -h || $word == --help ]]; then exec "$BUILD/bench/$program" --help; fi
    if [[ $word == --quick ]]; then chosen=("${QUICK_ARGUMENTS[@]}"); fi
  done
  start_redis
  on_client_core "$BUILD/bench/$program" --redis "$REDIS_ADDRESS" "${chosen[@]}" \
    ${FCAP_BENCH_USERS:+--users "$FCAP_BENCH_USERS"} "$@"
}
