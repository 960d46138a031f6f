#!/usr/bin/env bash
# ./dev demo looks at its arguments before it builds or starts anything.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/fcap-demo-test.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
passed=0 failed=0

# refused SAID ARGUMENTS…: exit code 2, at once, with this text, and nothing on standard output.
refused() {
  local said=$1 code=0
  shift
  # Nowhere to build and no servers' directory: going on would show.
  FCAP_DEV_DIR=$WORK/dev timeout 60 "$FCAP_ROOT/dev" demo "$@" >"$WORK/out" 2>"$WORK/err" || code=$?
  if ((code == 2)) && grep -qF -- "$said" "$WORK/err" && [[ ! -s $WORK/out && ! -e $WORK/dev ]]; then
    echo "ok      demo $*"
    passed=$((passed + 1))
  else
    echo "FAILED  demo $*: exit code $code"
    cat "$WORK/out" "$WORK/err"
    failed=$((failed + 1))
  fi
}

refused "unrecognized arguments: --bogus" --bogus
refused "unrecognized arguments: stray" --seconds 5 stray
refused '--seconds: "abc" is not a number from 1 to 86400' --seconds abc
refused '--seconds: "0" is not a number' --seconds=0
refused "--seconds: expected one argument" --seconds
refused '--rate: "1e3" is not a number' --rate 1e3
refused "--redis: invalid choice: 'double'" --redis double
refused '--tier: "redis" must be one of nothing, local, shared, page, reserve' --tier reserve,redis
refused '--servers: "0" is not a number from 1 to 16' --servers 0
refused "bring traffic of their own: leave out --rate and --log" --servers 2 --rate 100
refused "--failover needs --redis sentinel or cluster" --failover
refused "--log: can't open '/nonexistent'" --log /nonexistent
refused "--json: can't open '/nonexistent/x.json'" --json /nonexistent/x.json
refused "--json: can't open '$WORK': [Errno 21] Is a directory" --json "$WORK"

if "$FCAP_ROOT/dev" demo --help | grep -q -- '--drain-seconds'; then
  echo "ok      demo --help"
  passed=$((passed + 1))
else
  echo "FAILED  demo --help"
  failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
((failed == 0))
