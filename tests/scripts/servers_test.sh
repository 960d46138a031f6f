#!/usr/bin/env bash
# ./dev up leaves nothing behind when one of the servers cannot start.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/fcap-servers-test.XXXXXX")
export FCAP_DEV_DIR=$WORK/dev FCAP_SERVICE_OWNER=$$
trap '"$FCAP_ROOT/scripts/servers.py" down >/dev/null 2>&1 || true; rm -rf "$WORK"' EXIT

# A Redis of ours sits on the port that PostgreSQL wants.
taken=$("$FCAP_ROOT/scripts/service" redis start --dir "$WORK/other" --port 0 | sed -n 's/^port=//p')
export FCAP_REDIS_PORT=0 FCAP_KAFKA_PORT=0 FCAP_PG_PORT=$taken

code=0
"$FCAP_ROOT/scripts/servers.py" up >"$WORK/out" 2>&1 || code=$?
"$FCAP_ROOT/scripts/servers.py" status >"$WORK/status" || true
"$FCAP_ROOT/scripts/service" redis stop --dir "$WORK/other" >/dev/null
if ((code == 4)) && grep -q "Set FCAP_PG_PORT" "$WORK/out" && ! grep -q running "$WORK/status"; then
  echo "ok      the variable to set is named, and what had started was stopped again"
else
  echo "FAILED  exit code $code"
  cat "$WORK/out" "$WORK/status"
  exit 1
fi
