# shellcheck shell=bash
# Loopback ports: is one taken, and which one is free.

port_busy() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Names the process behind a port, where the machine can tell.
port_holder() {
  command -v ss >/dev/null 2>&1 || return 0
  ss -Hltnp "sport = :$1" 2>/dev/null | sed -n 's/.*users:((\(.*\)))$/\1/p' | head -n 1
}

# A port handed out stays reserved for the instance that got it while that instance's files name it, so that
# a killed server finds its port free when it is started again.
port_reserved() {
  local holder=
  { holder=$(<"$FCAP_PORTS_DIR/$1"); } 2>/dev/null || return 1
  [[ -n $holder && $holder != "$2" ]] && grep -qsx "port=$1" "$holder/instance"
}

# choose_port COUNT HOME: prints the first of COUNT consecutive free ports, below the range that the kernel
# gives to outgoing connections.
choose_port() {
  local count=$1 home=$2 tries base offset lock_fd
  FCAP_PORTS_DIR=${TMPDIR:-/tmp}/fcap-ports-$UID
  mkdir -p "$FCAP_PORTS_DIR"
  exec {lock_fd}>"$FCAP_PORTS_DIR/lock"
  flock "$lock_fd"
  for ((tries = 0; tries < 200; tries++)); do
    base=$((20000 + SRANDOM % 12000))
    for ((offset = 0; offset < count; offset++)); do
      if port_reserved $((base + offset)) "$home" || port_busy $((base + offset)); then continue 2; fi
    done
    for ((offset = 0; offset < count; offset++)); do printf '%s' "$home" >"$FCAP_PORTS_DIR/$((base + offset))"; done
    exec {lock_fd}>&-
    printf '%s' "$base"
    return 0
  done
  return 1
}
