# shellcheck shell=bash
# Steps of a test run: each timed, its result counted, none stopping the others.

STEPS_REPORT=()
STEPS_PASSED=0
STEPS_FAILED=0
STEPS_SKIPPED=0
STEP_IS_TEST=1

# Adds up what a step's output says of its tests: ctest's summary, or a plain "N passed, N failed"; a step that
# says nothing of the kind is one test itself.
count_step() {
  local log=$1 code=$2 passed=0 failed=0 skipped=0 total line
  line=$(grep -aE '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+' "$log" | tail -n 1 || true)
  if [[ $line =~ ,\ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    skipped=$(grep -acE '^[[:space:]]+[0-9]+ - .*\(Skipped\)' "$log" || true)
    passed=$((total - failed - skipped))
  else
    line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1 || true)
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)? ]]; then
      passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]} skipped=${BASH_REMATCH[4]:-0}
    elif ((code == 0)); then
      passed=1
    fi
  fi
  if ((code != 0 && failed == 0)); then failed=1; fi
  STEPS_PASSED=$((STEPS_PASSED + passed))
  STEPS_FAILED=$((STEPS_FAILED + failed))
  STEPS_SKIPPED=$((STEPS_SKIPPED + skipped))
}

# step NAME COMMAND…: runs it without standard input. In the background and waited for, so that a signal to this
# script is seen at once and not when the step is over.
step() {
  local name=$1 began=$SECONDS code=0 log=$RUN_DIR/step.log result
  shift
  printf '\n=== %s\n' "$name"
  # tee carries no mark: it is still there when the last step looks for what has survived.
  "$@" </dev/null > >(env -u FCAP_RUN_MARK tee "$log") 2>&1 &
  STEP_PID=$!
  wait "$STEP_PID" || code=$?
  nap 0.05 # tee's last lines
  if ((code != 0 || STEP_IS_TEST)); then count_step "$log" "$code"; fi
  if ((code == 0)); then result=ok; else result="FAILED (exit $code)"; fi
  printf '=== %s: %s, %d s\n' "$name" "$result" $((SECONDS - began))
  STEPS_REPORT+=("$(printf '%-32s %5d s  %s' "$name" $((SECONDS - began)) "$result")")
  return "$code"
}

# Building and installing: no test, unless it fails.
setup_step() {
  local code=0
  STEP_IS_TEST=0
  step "$@" || code=$?
  STEP_IS_TEST=1
  return "$code"
}

steps_summary() {
  printf '\n'
  printf '%s\n' "${STEPS_REPORT[@]}"
  printf '%d s in all\n\n' "$SECONDS"
  printf '%d passed, %d failed, %d skipped\n' "$STEPS_PASSED" "$STEPS_FAILED" "$STEPS_SKIPPED"
  ((STEPS_FAILED == 0))
}
