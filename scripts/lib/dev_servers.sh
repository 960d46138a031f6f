# shellcheck shell=bash
# The developer instance: one Redis, one Kafka, one PostgreSQL in FCAP_DEV_DIR, on ports of their own.

FCAP_REDIS_PORT=${FCAP_REDIS_PORT:-16379}
FCAP_KAFKA_PORT=${FCAP_KAFKA_PORT:-19092} # and the next one, for Kafka's controller
FCAP_PG_PORT=${FCAP_PG_PORT:-15432}
export FCAP_REDIS_PORT FCAP_KAFKA_PORT FCAP_PG_PORT
DEV_CONNINFO="host=127.0.0.1 port=$FCAP_PG_PORT user=postgres dbname=fcap"
DEV_KINDS=(redis postgres kafka)

dev_service() {
  local kind=$1 action=$2
  shift 2
  "$FCAP_ROOT/scripts/service" "$kind" "$action" --dir "$FCAP_DEV_DIR" "$@"
}

# Starts all three at once and waits for all, so that each one's error is seen. What was not running before is
# listed in DEV_STARTED.
dev_servers_up() {
  local kind failed=0 port_env pids=() index options
  mkdir -p "$FCAP_DEV_DIR"
  DEV_STARTED=()
  for kind in "${DEV_KINDS[@]}"; do rm -f "$FCAP_DEV_DIR/$kind.out"; done
  for kind in "${DEV_KINDS[@]}"; do
    options=()
    case $kind in
      redis) port_env=FCAP_REDIS_PORT ;;
      postgres) port_env=FCAP_PG_PORT options=(--database fcap) ;;
      kafka) port_env=FCAP_KAFKA_PORT ;;
    esac
    dev_service "$kind" start --port "${!port_env}" --port-env "$port_env" ${options[@]+"${options[@]}"} \
      >"$FCAP_DEV_DIR/$kind.out" &
    pids+=($!)
  done
  for index in "${!DEV_KINDS[@]}"; do
    kind=${DEV_KINDS[index]}
    wait "${pids[index]}" || failed=1
    if grep -qx started=yes "$FCAP_DEV_DIR/$kind.out"; then DEV_STARTED+=("$kind"); fi
  done
  ((failed == 0)) || return 1
  dev_service kafka create-topic impressions 4 >/dev/null
  dev_service kafka create-topic impressions.dead 1 >/dev/null
  if compgen -G "$FCAP_ROOT/sql/[0-9]*.sql" >/dev/null; then "$FCAP_ROOT/scripts/migrate" "$DEV_CONNINFO" >&2; fi
}

# What dev_servers_up has started so far, also when it was interrupted halfway.
dev_servers_down_started() {
  local kind started=()
  wait || true # starts that are under way, as each says only at its end what it has done
  for kind in "${DEV_KINDS[@]}"; do
    if grep -qsx started=yes "$FCAP_DEV_DIR/$kind.out"; then started+=("$kind"); fi
  done
  ((${#started[@]} == 0)) || dev_servers_down "${started[@]}" >/dev/null 2>&1
}

# dev_servers_down KIND…
dev_servers_down() {
  local kind
  for kind in "$@"; do dev_service "$kind" stop & done
  wait
}

dev_servers_print() {
  printf 'redis     127.0.0.1:%s\n' "$FCAP_REDIS_PORT"
  printf 'kafka     127.0.0.1:%s  topics impressions, impressions.dead\n' "$FCAP_KAFKA_PORT"
  printf 'postgres  %s\n' "$DEV_CONNINFO"
}

# Exit code 3, as in scripts/service, when one of them does not run.
dev_servers_status() {
  local kind text code=0
  for kind in "${DEV_KINDS[@]}"; do
    text=$(dev_service "$kind" status) || code=3
    [[ $text == *state=running* ]] || code=3
    printf '%-9s %-14s port %-6s %s\n' "$kind" "$(sed -n 's/^state=//p' <<<"$text")" \
      "$(sed -n 's/^port=//p' <<<"$text")" "$(sed -n 's/^log=//p' <<<"$text")"
  done
  return "$code"
}
