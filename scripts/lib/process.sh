# shellcheck shell=bash
# Processes by identity: a pid alone may have been given to somebody else since it was written down.

# Prints the start time (clock ticks since boot) of a live process; fails for a missing one or a zombie. A killed
# process with threads may be a zombie by its first thread and still hold its ports by the others.
process_start_ticks() {
  local stat fields
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  read -ra fields <<<"${stat##*) }"
  ((${#fields[@]} > 19)) || return 1 # ended while we read
  [[ ${fields[0]} != [ZX] || ${fields[17]} -gt 1 ]] || return 1
  printf '%s' "${fields[19]}"
}

# process_alive PID START_TICKS
process_alive() {
  local ticks
  [[ -n ${1:-} ]] && ticks=$(process_start_ticks "$1") && [[ $ticks == "${2:-}" ]]
}

process_state_letter() {
  local stat
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  stat=${stat##*) }
  printf '%s' "${stat%% *}"
}

process_children() {
  local list=
  { list=$(<"/proc/$1/task/$1/children"); } 2>/dev/null || true
  printf '%s' "$list"
}

# Everything that a run starts carries its mark in the environment, whatever session or parent it ends up with, so
# a run can find and end what it would otherwise leave behind. A run within a run carries both marks.
mark_run() {
  OWN_MARK=$$-$(process_start_ticks $$)
  export FCAP_RUN_MARK=${FCAP_RUN_MARK:+$FCAP_RUN_MARK,}$OWN_MARK
}

# Prints the pids that carry our mark. This shell and its subshells do not: theirs is the environment from before.
marked_processes() {
  local path pid
  while read -r path; do
    pid=${path//[^0-9]/}
    if process_start_ticks "$pid" >/dev/null; then printf '%s\n' "$pid"; fi
  done <<<"$(grep -lzsE "^FCAP_RUN_MARK=(.*,)?$OWN_MARK(,.*)?\$" /proc/[0-9]*/environ)"
}

# Ends what is left of this run: politely, and after SECONDS for good.
end_marked_processes() {
  local deadline=$((SECONDS + $1)) pids signal
  for signal in TERM KILL; do
    pids=$(marked_processes)
    [[ -n $pids ]] || return 0
    # shellcheck disable=SC2086  # a list of pids
    kill -"$signal" $pids 2>/dev/null || true
    # shellcheck disable=SC2086
    kill -CONT $pids 2>/dev/null || true
    while [[ -n $(marked_processes) ]] && ((SECONDS < deadline)); do nap 0.05; done
  done
}

# wait_gone PID START_TICKS SECONDS: waits for the end of a process that is no child of ours.
wait_gone() {
  local deadline=$((${EPOCHREALTIME/./} + $3 * 1000000))
  while process_alive "$1" "$2"; do
    ((${EPOCHREALTIME/./} < deadline)) || return 1
    nap 0.01
  done
}

# Stops the parent first, so that no child is born behind our back, and then its children.
freeze_tree() {
  local pid=$1 child tries=0
  kill -STOP "$pid"
  while [[ $(process_state_letter "$pid") != T ]]; do
    ((++tries < 500)) || return 1
    nap 0.002
  done
  for child in $(process_children "$pid"); do kill -STOP "$child" 2>/dev/null || true; done
}

thaw_tree() {
  local pid=$1 child
  for child in $(process_children "$pid"); do kill -CONT "$child" 2>/dev/null || true; done
  kill -CONT "$pid"
}

# SIGKILL for a process and its children. Does not wait.
kill_tree() {
  local pid=$1 children
  kill -STOP "$pid" 2>/dev/null || return 0
  children=$(process_children "$pid")
  # shellcheck disable=SC2086  # a list of pids
  kill -KILL "$pid" $children 2>/dev/null || true
}
