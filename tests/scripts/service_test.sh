#!/usr/bin/env bash
# scripts/service against real servers: what the integration tests and ./dev rely on. One instance at a time.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"

SERVICE=$FCAP_ROOT/scripts/service
WORK=$(mktemp -d "${TMPDIR:-/tmp}/fcap-service-test.XXXXXX")
chmod 711 "$WORK"
export FCAP_SERVICE_OWNER=$$
passed=0 failed=0

cleanup() {
  local kind
  for kind in redis postgres kafka redis-sentinel redis-cluster; do
    if [[ -d $WORK/$kind ]]; then "$SERVICE" "$kind" kill --dir "$WORK" || true; fi
  done
  rm -rf "$WORK"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# check NAME FUNCTION: the function runs in a subshell of its own, strict; its output is shown when it fails.
check() {
  local code
  set +e # an "|| code=$?" here would switch the strictness off inside
  (
    set -e
    "$2"
  ) >"$WORK/log" 2>&1
  code=$?
  set -e
  if ((code == 0)); then
    echo "ok      $1"
    passed=$((passed + 1))
  else
    echo "FAILED  $1"
    cat "$WORK/log"
    failed=$((failed + 1))
  fi
}

value() { sed -n "s/^$1=//p"; }

# expect_code CODE COMMAND…
expect_code() {
  local wanted=$1 code=0
  shift
  "$@" || code=$?
  if ((code != wanted)); then
    echo "exit code $code, not $wanted: $*"
    return 1
  fi
}

equal() {
  [[ $1 == "$2" ]] || {
    echo "'$1' is not '$2'"
    return 1
  }
}

redis_start() { "$SERVICE" redis start --dir "$WORK" --port 0 "$@"; }

starts_once() {
  local first second
  first=$(redis_start)
  second=$(redis_start)
  equal "$(value started <<<"$first")" yes
  equal "$(value started <<<"$second")" no
  equal "$(value pid <<<"$first")" "$(value pid <<<"$second")"
  equal "$(redis-cli -p "$(value port <<<"$first")" ping)" PONG
}

crash_keeps_port_and_options() {
  local port
  "$SERVICE" redis stop --dir "$WORK"
  port=$(redis_start -- --maxmemory 12mb --appendonly yes --appendfsync always | value port)
  redis-cli -p "$port" set key value
  "$SERVICE" redis kill --dir "$WORK"
  expect_code 3 "$SERVICE" redis status --dir "$WORK"
  equal "$("$SERVICE" redis start --dir "$WORK" | value port)" "$port"
  equal "$(redis-cli -p "$port" config get maxmemory | tail -n 1)" 12582912
  equal "$(redis-cli -p "$port" get key)" value
}

frozen_answers_nothing() {
  local port
  port=$(redis_start | value port)
  "$SERVICE" redis freeze --dir "$WORK"
  equal "$("$SERVICE" redis status --dir "$WORK" | value state)" frozen
  expect_code 124 timeout 0.3 redis-cli -p "$port" ping
  "$SERVICE" redis thaw --dir "$WORK"
  equal "$(redis-cli -p "$port" ping)" PONG
}

frozen_can_be_stopped() {
  redis_start
  "$SERVICE" redis freeze --dir "$WORK"
  "$SERVICE" redis stop --dir "$WORK"
  expect_code 3 "$SERVICE" redis status --dir "$WORK"
}

busy_port_is_named() {
  local port text code=0
  port=$(redis_start | value port)
  text=$("$SERVICE" redis start --dir "$WORK/other" --port "$port" 2>&1) || code=$?
  equal "$code" 4
  [[ $text == *"127.0.0.1:$port"* && $text == *"Set --port to another port"* ]]
}

bad_option_shows_the_log() {
  local text code=0
  text=$("$SERVICE" redis start --dir "$WORK/bad" --port 0 -- --maxmemory banana 2>&1) || code=$?
  equal "$code" 1
  [[ $text == *"argument must be a memory value"* ]]
}

ends_with_its_owner() {
  local pid tries=0
  pid=$(bash -c '"$0" redis start --dir "$1" --port 0 --owner $$; kill -9 $$' "$SERVICE" "$WORK/owned" | value pid) || true
  while "$SERVICE" redis status --dir "$WORK/owned"; do
    ((++tries < 1200)) || {
      kill -9 "$pid"
      return 1
    }
    sleep 0.05
  done
}

# A caller that reads our output to its end must not wait for the server's end.
holds_no_pipe() {
  "$SERVICE" redis stop --dir "$WORK"
  # shellcheck disable=SC2016  # expanded by the inner shell
  timeout 60 bash -c '"$0" redis start --dir "$1" 3>&1 9>&1 | cat >/dev/null' "$SERVICE" "$WORK"
}

starts_at_once_share_no_port() {
  local index pids=()
  for index in 1 2 3 4 5 6; do
    "$SERVICE" redis start --dir "$WORK/many$index" --port 0 >"$WORK/many$index.out" &
    pids+=($!)
  done
  for index in "${pids[@]}"; do wait "$index"; done
  equal "$(cat "$WORK"/many*.out | value port | sort -u | wc -l)" 6
  for index in 1 2 3 4 5 6; do "$SERVICE" redis kill --dir "$WORK/many$index"; done
}

postgres_survives_a_crash() {
  local conninfo memory
  conninfo=$("$SERVICE" postgres start --dir "$WORK" --port 0 | value conninfo)
  memory=$(awk 'NR == 7 { print $2 }' "$WORK/postgres/data/postmaster.pid")
  ipcs -m -i "$memory"
  psql -Xq "$conninfo" -c 'CREATE TABLE t AS SELECT 42 AS n'
  psql -Xq "$conninfo" -c 'CHECKPOINT'
  "$SERVICE" postgres freeze --dir "$WORK"
  expect_code 124 timeout 0.3 psql -XAtq "$conninfo" -c 'SELECT 1'
  "$SERVICE" postgres thaw --dir "$WORK"
  "$SERVICE" postgres kill --dir "$WORK"
  equal "$(ipcs -m | awk -v id="$memory" '$2 == id')" ""
  expect_code 2 psql -XAtq "$conninfo" -c 'SELECT 1'
  "$SERVICE" postgres start --dir "$WORK"
  equal "$(psql -XAtq "$conninfo" -c 'SELECT n FROM t')" 42
}

migrations_apply_once() {
  local conninfo
  conninfo=$("$SERVICE" postgres start --dir "$WORK/migrated" | value conninfo)
  mkdir -p "$WORK/sql"
  echo 'CREATE TABLE one (n int);' >"$WORK/sql/0001_one.sql"
  echo 'CREATE TABLE two (n int); SELECT 1 / 0;' >"$WORK/sql/0002_two.sql"
  export FCAP_SQL_DIR=$WORK/sql
  expect_code 1 "$FCAP_ROOT/sql/migrate" "$conninfo"
  equal "$(psql -XAtq "$conninfo" -c "SELECT string_agg(name, ',') FROM fcap_schema_migrations")" 0001_one
  equal "$(psql -XAtq "$conninfo" -c "SELECT to_regclass('two') IS NULL")" t
  echo 'CREATE TABLE two (n int);' >"$WORK/sql/0002_two.sql"
  equal "$("$FCAP_ROOT/sql/migrate" "$conninfo")" "applied 0002_two"
  equal "$("$FCAP_ROOT/sql/migrate" "$conninfo")" ""
  echo '-- afterthought' >>"$WORK/sql/0001_one.sql"
  expect_code 1 "$FCAP_ROOT/sql/migrate" "$conninfo"
  "$SERVICE" postgres stop --dir "$WORK/migrated"
}

kafka_survives_a_crash() {
  local brokers
  brokers=$("$SERVICE" kafka start --dir "$WORK" --port 0 | value brokers)
  equal "$("$SERVICE" kafka create-topic --dir "$WORK" events 4)" created=yes
  equal "$("$SERVICE" kafka create-topic --dir "$WORK" events 4)" created=no
  expect_code 1 "$SERVICE" kafka create-topic --dir "$WORK" 'bad name' 4
  [[ $(kcat -b "$brokers" -L -t events) == *"with 4 partitions"* ]]
  echo hello | kcat -b "$brokers" -P -t events -p 2
  "$SERVICE" kafka kill --dir "$WORK"
  "$SERVICE" kafka start --dir "$WORK"
  equal "$(kcat -b "$brokers" -C -t events -p 2 -e -q)" hello
}

# until_says PORT COMMAND PATTERN: waits until Redis' reply has such a line.
until_says() {
  local tries=0
  # shellcheck disable=SC2086  # the command's words
  until redis-cli -p "$1" $2 | grep -qe "$3"; do
    ((++tries < 600))
    sleep 0.1
  done
}

sentinels_replace_a_killed_master() {
  local text port sentinel tries=0
  text=$("$SERVICE" redis-sentinel start --dir "$WORK" --port 0)
  port=$(value port <<<"$text")
  sentinel=$((port + 5))
  [[ $(value url <<<"$text") == redis-sentinel://127.0.0.1:$((port + 3)),*:$sentinel/fcap ]]
  equal "$(redis-cli -p "$sentinel" sentinel get-master-addr-by-name fcap | tail -n 1)" "$port"
  "$SERVICE" redis-sentinel kill --dir "$WORK" --node 0
  until [[ $(redis-cli -p "$sentinel" sentinel get-master-addr-by-name fcap | tail -n 1) != "$port" ]]; do
    ((++tries < 600))
    sleep 0.1
  done
  "$SERVICE" redis-sentinel start --dir "$WORK"
  equal "$(redis-cli -p "$port" role | head -n 1)" slave
  "$SERVICE" redis-sentinel stop --dir "$WORK"
  equal "$("$SERVICE" redis-sentinel status --dir "$WORK" | grep -c '^state=stopped')" 6
}

replicas_replace_a_killed_master() {
  local text port
  text=$("$SERVICE" redis-cluster start --dir "$WORK" --port 0)
  port=$(value port <<<"$text")
  [[ $(value url <<<"$text") == redis-cluster://127.0.0.1:$port,*:$((port + 5)) ]]
  equal "$(redis-cli -p "$port" cluster slots | grep -c '^127.0.0.1$')" 6
  "$SERVICE" redis-cluster kill --dir "$WORK" --node 0
  until_says "$((port + 3))" role '^master$'
  "$SERVICE" redis-cluster start --dir "$WORK"
  until_says "$port" role '^slave$'
  "$SERVICE" redis-cluster start --dir "$WORK" --node 6
  redis-cli -p "$port" cluster meet 127.0.0.1 "$((port + 6))" "$((port + 14))"
  until_says "$((port + 6))" "cluster nodes" "127.0.0.1:$((port + 1))@"
  "$SERVICE" redis-cluster stop --dir "$WORK"
  equal "$("$SERVICE" redis-cluster status --dir "$WORK" | grep -c '^state=stopped')" 8
}

# Sentinel ends the connections of a server that it makes a replica.
reset_connection_is_no_answer() {
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$FCAP_ROOT/scripts python3 - "$WORK" <<'PYTHON'
import socket, struct, sys, threading
from redis_server import Redis

def reset():
    connection = listener.accept()[0]
    connection.recv(100)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=reset).start()
server = Redis(sys.argv[1])
server.port = listener.getsockname()[1]
assert server.ask("INFO replication") == ""
PYTHON
}

# Programs of the machine, but for one.
programs_without() {
  local missing=$1 directory=$WORK/without-$1 program
  mkdir -p "$directory"
  for program in /usr/bin/* /usr/sbin/*; do
    if [[ ${program##*/} != "$missing" ]]; then ln -sf "$program" "$directory/"; fi
  done
  printf '%s' "$directory"
}

missing_tool_is_named() {
  local tool kind text
  while read -r kind tool; do
    text=$(PATH=$(programs_without "$tool") expect_code 1 "$SERVICE" "$kind" start --dir "$WORK/bare" --port 0 2>&1)
    equal "$(grep -c . <<<"$text")" 1
    [[ $text == "error: $tool is missing; "*"apt-get install "* ]]
  done <<'TOOLS'
redis redis-server
postgres psql
kafka java
TOOLS
}

wrong_use_is_told() {
  expect_code 2 "$SERVICE" redis
  expect_code 2 "$SERVICE" mongodb start --dir "$WORK"
  expect_code 2 "$SERVICE" redis start
  expect_code 2 "$SERVICE" redis create-topic --dir "$WORK" events 4
  expect_code 2 "$SERVICE" kafka create-topic --dir "$WORK" events
  expect_code 2 "$SERVICE" redis start --dir "$WORK" --port banana
  expect_code 3 "$SERVICE" redis freeze --dir "$WORK/fresh"
  expect_code 0 "$SERVICE" redis stop --dir "$WORK/never"
}

check "a second start reuses the first server" starts_once
check "a killed server comes back with its port, options and data" crash_keeps_port_and_options
check "a frozen server answers nothing until it is thawed" frozen_answers_nothing
check "a frozen server can be stopped" frozen_can_be_stopped
check "a port taken by another is named, and what to change" busy_port_is_named
check "a server that does not start shows its log" bad_option_shows_the_log
check "a server ends with its owner" ends_with_its_owner
check "a server keeps no pipe of its starter open" holds_no_pipe
check "servers started at once get ports of their own" starts_at_once_share_no_port
check "PostgreSQL can be frozen, killed and started again" postgres_survives_a_crash
check "migrations are applied once, whole, and never changed" migrations_apply_once
check "Kafka can be killed and started again, topics and messages kept" kafka_survives_a_crash
check "sentinels replace a killed master, which comes back as a replica" sentinels_replace_a_killed_master
check "a cluster's replica replaces a killed master, which comes back as a replica" replicas_replace_a_killed_master
check "a connection that is reset while Redis is asked is no answer" reset_connection_is_no_answer
check "a missing tool is named at once, and how to get it" missing_tool_is_named
check "wrong use is told by exit code 2" wrong_use_is_told
echo "$passed passed, $failed failed"
((failed == 0))
