# shellcheck shell=bash
# One real server in a directory of its own: its state on disk, start, stop and faults. What differs between
# servers is in kind_<name>.sh, which defines for each kind:
#   <kind>_ports              how many consecutive ports an instance takes
#   <kind>_prepare            writes configuration and an empty data directory where there is none
#   <kind>_command            sets the array COMMAND
#   <kind>_ready              succeeds once the server answers (called every few milliseconds)
#   <kind>_started            what is to be there once it answers (a database)
#   <kind>_describe           prints further key=value lines
#   <kind>_stop_signal        the signal for an orderly stop
#   <kind>_default_timeout    seconds to wait for the first answer
# They see: KIND, DIR, HOME_DIR (= DIR/KIND), LOG, PORT, EXTRA (array), and the option variables of scripts/service.

# State of the instance as last written: PORT_SAVED, PID, TICKS (empty when it is not running).
load_state() {
  local key value
  PORT_SAVED='' PID='' TICKS=''
  [[ -f $HOME_DIR/instance ]] || return 0
  while IFS='=' read -r key value; do
    case $key in
      port) PORT_SAVED=$value ;;
      pid) PID=$value ;;
      ticks) TICKS=$value ;;
    esac
  done <"$HOME_DIR/instance"
}

save_state() {
  printf 'port=%s\npid=%s\nticks=%s\n' "$PORT" "$PID" "$TICKS" >"$HOME_DIR/instance.new"
  mv "$HOME_DIR/instance.new" "$HOME_DIR/instance"
}

# Arguments behind -- are kept, so that a plain `start` after a `kill` brings back the same server.
load_extra() {
  [[ -f $HOME_DIR/extra ]] || return 0
  mapfile -d '' -t EXTRA <"$HOME_DIR/extra"
}

save_extra() {
  : >"$HOME_DIR/extra"
  if ((${#EXTRA[@]})); then printf '%s\0' "${EXTRA[@]}" >"$HOME_DIR/extra"; fi
}

lock_instance() {
  exec {INSTANCE_LOCK_FD}>"$HOME_DIR/lock"
  flock -w 120 "$INSTANCE_LOCK_FD" || die "another command has held $HOME_DIR for two minutes"
}

running() { process_alive "$PID" "$TICKS"; }

log_tail() {
  say "--- last lines of $LOG"
  tail -n 25 "$LOG" >&2 2>/dev/null || true
  say "---"
}

print_instance() {
  printf 'kind=%s\nport=%s\npid=%s\ndir=%s\nlog=%s\n' "$KIND" "$PORT" "$PID" "$HOME_DIR" "$LOG"
  "${KIND}_describe"
}

# The port as asked for, or as used last time, or (0) any free one. Sets PORT and PORT_CHOSEN.
settle_port() {
  PORT_CHOSEN=no
  if [[ -z $PORT_ASKED || $PORT_ASKED == 0 ]]; then
    PORT=$PORT_SAVED
    if [[ -z $PORT ]]; then
      [[ -n $PORT_ASKED ]] || die_usage "$KIND in $DIR has no port yet: give --port PORT (0: any free one)"
      PORT=$(choose_port "$("${KIND}_ports")" "$HOME_DIR") || die "no free port found"
      PORT_CHOSEN=yes
    fi
  else
    PORT=$PORT_ASKED
  fi
}

refuse_busy_port() {
  local holder offset count
  count=$("${KIND}_ports")
  for ((offset = 0; offset < count; offset++)); do
    port_busy $((PORT + offset)) || continue
    holder=$(port_holder $((PORT + offset)))
    say "error: $KIND cannot use 127.0.0.1:$((PORT + offset)): something else listens there${holder:+ ($holder)}."
    if [[ -n $PORT_ENV ]]; then
      say "       Set $PORT_ENV to another port, or stop the other program."
    else
      say "       Give another --port, or stop the other program."
    fi
    exit 4
  done
}

spawn_server() {
  "${KIND}_command"
  (
    close_inherited_fds
    exec setsid "${COMMAND[@]}"
  ) </dev/null >>"$LOG" 2>&1 &
  PID=$!
  TICKS=$(process_start_ticks "$PID") || TICKS=0
  save_state
}

# Succeeds once the server answers; 1: it died or never answered.
wait_ready() {
  local deadline=$((${EPOCHREALTIME/./} + TIMEOUT_SECONDS * 1000000))
  while ! "${KIND}_ready"; do
    running || { say "error: $KIND on port $PORT ended before it answered."; return 1; }
    if ((${EPOCHREALTIME/./} >= deadline)); then
      say "error: $KIND on port $PORT did not answer within $TIMEOUT_SECONDS s."
      return 1
    fi
    nap 0.01
  done
  running
}

# The server must not outlive the process it was started for, however that one ends.
spawn_owner_watch() {
  [[ -n $OWNER ]] || return 0
  (
    close_inherited_fds
    exec setsid "$FCAP_ROOT/scripts/service" "$KIND" watch-owner --dir "$DIR" --owner "$OWNER"
  ) </dev/null >/dev/null 2>&1 &
}

# A run that ends all its processes (end_marked_processes) finds this watch rather than a server that has
# overwritten its environment, as Redis does; the watch passes the end on.
watch_owner() {
  local owner_ticks
  running || return 0
  trap 'kill_tree "$PID"; exit 0' TERM HUP INT
  owner_ticks=$(process_start_ticks "$OWNER") || owner_ticks=none
  while process_alive "$OWNER" "$owner_ticks"; do
    running || return 0
    nap 0.2
  done
  if running; then kill_tree "$PID"; fi
}

start_instance() {
  local attempt
  mkdir -p "$HOME_DIR"
  lock_instance
  load_state
  if running; then
    PORT=$PORT_SAVED
    if [[ -n $PORT_ASKED && $PORT_ASKED != 0 && $PORT_ASKED != "$PORT" ]]; then
      die "$KIND in $DIR already runs on port $PORT; stop it first to move it to $PORT_ASKED"
    fi
    [[ $(process_state_letter "$PID") != T ]] || die "$KIND in $DIR is frozen; thaw it first"
    wait_ready || { log_tail; return 1; }
    "${KIND}_started"
    print_instance
    printf 'started=no\n'
    return 0
  fi
  ((EXTRA_GIVEN)) || load_extra
  for attempt in 1 2 3; do
    settle_port
    refuse_busy_port
    "${KIND}_prepare"
    spawn_server
    if wait_ready; then
      save_extra
      "${KIND}_started"
      spawn_owner_watch
      print_instance
      printf 'started=yes\n'
      return 0
    fi
    kill_tree "$PID"
    # A port that was free a moment ago may have been taken meanwhile; only one that we chose is chosen again.
    [[ $PORT_CHOSEN == yes && $attempt -lt 3 ]] && tail -n 25 "$LOG" | grep -qi 'address already in use' || break
    rm -f "$HOME_DIR/instance"
    PORT_SAVED=
  done
  log_tail
  return 1
}

stop_instance() {
  load_or_done || return 0
  kill -"$("${KIND}_stop_signal")" "$PID" 2>/dev/null || true
  thaw_tree "$PID" 2>/dev/null || true
  if ! wait_gone "$PID" "$TICKS" "${STOP_SECONDS:-15}"; then
    warn "$KIND on port $PORT_SAVED did not stop within ${STOP_SECONDS:-15} s; killed"
    kill_tree "$PID"
    wait_gone "$PID" "$TICKS" 10 || die "$KIND (pid $PID) survives SIGKILL"
  fi
}

kill_instance() {
  load_or_done || return 0
  kill_tree "$PID"
  wait_gone "$PID" "$TICKS" 10 || die "$KIND (pid $PID) survives SIGKILL"
}

freeze_instance() {
  load_or_fail
  freeze_tree "$PID"
}

thaw_instance() {
  load_or_fail
  thaw_tree "$PID"
}

status_instance() {
  load_state
  PORT=$PORT_SAVED
  if ! running; then
    printf 'kind=%s\nstate=stopped\nport=%s\ndir=%s\n' "$KIND" "$PORT" "$HOME_DIR"
    return 3
  fi
  case $(process_state_letter "$PID") in
    T) printf 'state=frozen\n' ;;
    *) if "${KIND}_ready"; then printf 'state=running\n'; else printf 'state=not-answering\n'; fi ;;
  esac
  print_instance
}

# For stop and kill, that nothing runs is success.
load_or_done() {
  [[ -d $HOME_DIR ]] || return 1
  lock_instance
  load_state
  running
}

load_or_fail() {
  [[ -d $HOME_DIR ]] && lock_instance
  load_state
  running || { say "error: $KIND in $DIR is not running"; exit 3; }
}
