#!/usr/bin/env bash
# scripts/test.sh [ctest arguments]: all tests on real servers. With CI=true also the sanitizer builds, a short fuzz
# run and everything else that takes longer. Every step runs, whatever became of the one before; the last lines sum up.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"
source "$FCAP_ROOT/scripts/lib/process.sh"
source "$FCAP_ROOT/scripts/lib/ports.sh"
source "$FCAP_ROOT/scripts/lib/build.sh"
source "$FCAP_ROOT/scripts/lib/steps.sh"

# What the sanitizer builds make and run. TSan: only what more than one thread runs through. The programs
# themselves (label path) run in the release build; their parts are in these tests.
ASAN_TARGET=sanitizer_tests ASAN_LABELS='^(unit|redis|kafka|pg)$'
TSAN_TARGET=thread_tests TSAN_LABELS='^(unit|redis)$'
FUZZ_SECONDS=${FCAP_FUZZ_SECONDS:-15}

install_packages() { "$FCAP_ROOT/scripts/packages" build runtime test; }

# run_ctest PRESET [ctest arguments]. Tests that need the heavy servers exclude each other by themselves.
run_ctest() {
  local dir
  dir=$(build_dir "$1")
  shift
  ctest --test-dir "$dir" --output-on-failure --no-tests=error --timeout 600 -j "$(nproc)" "$@"
}

sanitizer_tests() {
  # Tests ask for more memory than there is and replace operator new: both are meant.
  export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1:alloc_dealloc_mismatch=0}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
  run_ctest "$1" -L "$2"
}

# Fuzz targets are built with the ASan tests. Each runs for a few seconds, from its own corpus where it has one; what it finds new is thrown away, what
# crashes it is kept beside the build.
fuzz_briefly() {
  local target name corpora seeds ran=0 code=0
  for target in "$(build_dir asan)"/tests/fuzz/*_fuzz; do
    [[ -x $target ]] || continue
    name=$(basename "$target")
    corpora=("$(mktemp -d "$RUN_DIR/$name.XXXXXX")")
    seeds=$FCAP_ROOT/tests/fuzz/corpus/${name%_fuzz}
    if [[ -d $seeds ]]; then corpora+=("$seeds"); fi
    ran=$((ran + 1))
    if "$target" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$(build_dir asan)/" "${corpora[@]}" >"$RUN_DIR/$name.log" 2>&1; then
      printf '%s: %s runs\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$RUN_DIR/$name.log")"
    else
      tail -n 40 "$RUN_DIR/$name.log"
      printf '%s: FAILED\n' "$name"
      code=1
    fi
  done
  ((ran > 0)) || { echo "no fuzz target was built"; return 1; }
  return "$code"
}

unit_files_are_hardened() {
  local unit line code=0
  for unit in "$FCAP_ROOT"/systemd/*.service; do
    line=$(systemd-analyze security --offline=true "$unit" 2>&1 | grep 'Overall exposure level') || line="no answer"
    printf '%s: %s\n' "$(basename "$unit")" "$line"
    awk -v line="$line" 'BEGIN { n = split(line, w, /[: ]+/); for (i = 1; i <= n; i++) if (w[i] ~ /^[0-9.]+$/ && w[i] <= 2.0) exit 0; exit 1 }' ||
      code=1
  done
  return "$code"
}

# The main job as a user runs it, for a few seconds, in a directory and on ports of its own: nothing lost, nothing double.
demo_counts_every_impression() {
  local base json=$RUN_DIR/demo.json
  base=$(choose_port 4 "$RUN_DIR/demo")
  FCAP_DEV_DIR=$RUN_DIR/demo FCAP_REDIS_PORT=$base FCAP_PG_PORT=$((base + 1)) FCAP_KAFKA_PORT=$((base + 2)) \
    "$FCAP_ROOT/scripts/demo.sh" --seconds 5 --json "$json" || return 1
  cat "$json"
  grep -qE '"produced": *[1-9]' "$json" && grep -qE '"lost": *0\b' "$json" && grep -qE '"double": *0\b' "$json"
}

# That all benches run and say their numbers; not what the numbers are.
benches_run() {
  local json=$RUN_DIR/bench.json key
  FCAP_BUILD_DIR=$(build_dir release) "$FCAP_ROOT/bench/run" --quick --report "$RUN_DIR/bench" --json "$json" || return 1
  for key in check_vs_zcount check_vs_get check_plain_get_vs_get eval_ns eval_allocs bytes_per_pair_compacted bytes_per_pair_steady; do
    jq -e ".$key | numbers" "$json" >/dev/null || { echo "no number: $key"; return 1; }
  done
  # Where the machine could not keep the rate up, or a part is not there, the report says so.
  for key in p99_us_at_100k updater_vs_zset updater_vs_redis_limit propagation_p99_ms_at_half; do
    jq -e ".$key // .missing.$key" "$json" >/dev/null || { echo "neither number nor reason: $key"; return 1; }
  done
}

# Servers, updaters, anything: a finished run leaves no process behind.
nothing_survives() {
  local deadline=$((SECONDS + 3)) left
  while left=$(marked_processes) && [[ -n $left ]]; do
    if ((SECONDS >= deadline)); then
      echo "still running after the tests:"
      ps -o pid,ppid,stat,args -p "${left//$'\n'/,}" || true
      return 1
    fi
    nap 0.1
  done
}

finish() {
  end_marked_processes 5 || true
  rm -rf "$RUN_DIR"
}

all_steps() {
  local check
  step "scripts and formatting" "$FCAP_ROOT/scripts/lint.sh" --quick
  step "systemd units are hardened" unit_files_are_hardened
  for check in "$FCAP_ROOT"/tests/scripts/*_test.sh; do step "$(basename "$check" .sh)" "$check"; done
  step "tests" run_ctest release
  step "demo" demo_counts_every_impression
  step "install" "$FCAP_ROOT/scripts/install_test.sh" "$(build_dir release)"
  [[ ${CI:-} == true ]] || return 0
  step "benches" benches_run
  setup_step "build asan" build_preset asan --target "$ASAN_TARGET" fuzz_targets && {
    step "tests under ASan and UBSan" sanitizer_tests asan "$ASAN_LABELS"
    step "fuzz" fuzz_briefly
  }
  setup_step "build tsan" build_preset tsan --target "$TSAN_TARGET" && step "tests under TSan" sanitizer_tests tsan "$TSAN_LABELS"
}

mark_run
RUN_DIR=$(mktemp -d "${TMPDIR:-/tmp}/fcap-test.XXXXXX")
chmod 711 "$RUN_DIR" # PostgreSQL's account passes through it
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
export TMPDIR=$RUN_DIR
# A server that does not start is a failure here, not a skipped test; and none outlives this run.
export FCAP_REQUIRE_SERVICES=1 FCAP_SERVICE_OWNER=$$
# Brokers of tests live for seconds: the quick compiler only, which takes a third less of the processor.
export FCAP_KAFKA_JAVA_OPTIONS=${FCAP_KAFKA_JAVA_OPTIONS:--XX:TieredStopAtLevel=1}

if setup_step "packages" install_packages && setup_step "build release" build_preset release; then
  if (($#)); then
    step "tests" run_ctest release "$@" || true
  else
    all_steps || true
  fi
fi
step "nothing survives" nothing_survives || true
steps_summary
