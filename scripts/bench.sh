#!/usr/bin/env bash
# scripts/bench.sh [args]: builds the optimised preset and hands over to the benchmarks (bench/run).
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"
source "$FCAP_ROOT/scripts/lib/process.sh"
source "$FCAP_ROOT/scripts/lib/build.sh"

"$FCAP_ROOT/scripts/packages" build runtime
build_preset release
export FCAP_BUILD_DIR
FCAP_BUILD_DIR=$(build_dir release)
# The servers that a benchmark starts end with it.
mark_run
export FCAP_SERVICE_OWNER=$$
trap 'end_marked_processes 5' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
"$FCAP_ROOT/bench/run" "$@" &
wait $!
