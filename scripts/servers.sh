#!/usr/bin/env bash
# scripts/servers.sh up|down|status: the developer's own Redis, Kafka and PostgreSQL, kept in .dev/.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"
source "$FCAP_ROOT/scripts/lib/dev_servers.sh"

case ${1:-} in
  up)
    # What this run has started ends again when the rest does not start, or somebody interrupts it. Servers that
    # were running before stay.
    trap 'code=$?; trap "" INT TERM; ((code == 0)) || dev_servers_down_started; exit "$code"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    dev_servers_up
    dev_servers_print
    ;;
  down) dev_servers_down "${DEV_KINDS[@]}" ;;
  status) dev_servers_status ;;
  *) die_usage "scripts/servers.sh up|down|status" ;;
esac
