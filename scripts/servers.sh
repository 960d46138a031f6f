#!/usr/bin/env bash
# scripts/servers.sh up|down|status: the developer's own Redis, Kafka and PostgreSQL, kept in .dev/.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"
source "$FCAP_ROOT/scripts/lib/dev_servers.sh"

case ${1:-} in
  up)
    dev_servers_up
    dev_servers_print
    ;;
  down) dev_servers_down "${DEV_KINDS[@]}" ;;
  status) dev_servers_status ;;
  *) die_usage "scripts/servers.sh up|down|status" ;;
esac
