# shellcheck shell=bash
# Redis: without persistence unless the arguments behind -- ask for it (they come last, so they win).

redis_ports() { echo 1; }
redis_default_timeout() { echo 10; }
redis_stop_signal() { echo TERM; }

redis_prepare() {
  require_tool redis-server redis-server
  require_tool redis-cli redis-tools
  mkdir -p "$HOME_DIR/data"
  rm -f "$HOME_DIR/data/redis.pid"
}

redis_command() {
  COMMAND=(redis-server --bind 127.0.0.1 --port "$PORT" --dir "$HOME_DIR/data"
    --pidfile "$HOME_DIR/data/redis.pid" --daemonize no --supervised no --logfile ''
    --save '' --appendonly no --tcp-backlog 128 --ignore-warnings ARM64-COW-BUG ${EXTRA[@]+"${EXTRA[@]}"})
}

# The pid file appears once our own server listens, so an answer cannot come from a stranger on that port.
# "NOAUTH" is an answer as well: the server is up and asks for the password it was given.
redis_ready() {
  local reply
  [[ -s $HOME_DIR/data/redis.pid ]] || return 1
  reply=$(timeout 2 redis-cli -h 127.0.0.1 -p "$PORT" ping 2>&1) || return 1
  [[ $reply == PONG || $reply == NOAUTH* ]]
}

redis_started() { :; }
redis_describe() { printf 'address=127.0.0.1:%s\n' "$PORT"; }
