#!/usr/bin/env bash
# tests/fuzz/corpus.py gives back the very bytes that it was given, and keeps what the packed file had.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/fcap-corpus-test.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/in" "$WORK/more" "$WORK/packed"
passed=0 failed=0

# check NAME COMMAND…
check() {
  local name=$1
  shift
  if "$@" >"$WORK/said" 2>&1; then
    echo "ok      $name"
    passed=$((passed + 1))
  else
    echo "FAILED  $name"
    cat "$WORK/said"
    failed=$((failed + 1))
  fi
}

corpus() { "$FCAP_ROOT/tests/fuzz/corpus.py" "$@" --corpus "$WORK/packed"; }
refuses() { ! corpus "$@"; }
says() { [[ $(corpus "${@:2}") == "$1" ]]; }
sums() { sha1sum -- "$@" | cut -d ' ' -f 1 | sort -u; }
# Each file is named by its SHA-1, and together they are the inputs that were packed.
same_inputs() {
  rm -rf "$WORK/out"
  corpus unpack event "$WORK/out" && diff <(sums "$@") <(sums "$WORK"/out/*) && diff <(sums "$@") <(ls "$WORK/out")
}
sorted_once() { LC_ALL=C sort -uc "$WORK/packed/event.txt"; }
every_line_is_ascii() { ! LC_ALL=C grep -n '[^ -~]' "$WORK/packed/event.txt"; }

: >"$WORK/in/empty"
printf '\n' >"$WORK/in/newline"
printf 'two\nlines\r\n' >"$WORK/in/lines"
printf '\0' >"$WORK/in/nul"
printf 'a\0b\x7f\x1e\x85' >"$WORK/in/bytes"
printf '\xff\xfe\n\0' >"$WORK/in/not-utf-8"
printf '\xed\xa0\x80' >"$WORK/in/surrogate"
printf '\xef\xbb\xbf\xf0\x9f\x98\x80\xe2\x80\xa8' >"$WORK/in/utf-8"
printf '%s' '"quoted" \u0000 \n' >"$WORK/in/quoted"
printf 'AAAA' >"$WORK/in/looks-like-base64"
printf 'AAAA' >"$WORK/in/twice"
printf 'two\nlines\r\n' >"$WORK/more/known"
printf 'new' >"$WORK/more/new"

check "packing finds the duplicate" says "event: 10 new inputs, 10 in all" pack event "$WORK/in"
check "the bytes come back" same_inputs "$WORK"/in/*
check "packing again adds nothing" says "event: 0 new inputs, 10 in all" pack event "$WORK/in"
check "packing adds to what is there" says "event: 1 new inputs, 11 in all" pack event "$WORK/more"
check "all of them come back" same_inputs "$WORK"/in/* "$WORK"/more/*
check "the lines are sorted, each of them once" sorted_once
check "the lines are ASCII" every_line_is_ascii
check "a target without inputs has none" says "ledger: 0 inputs in $WORK/none" unpack ledger "$WORK/none"
check "a target that does not exist is refused" refuses pack no_such_target "$WORK/in"
check "a directory that does not exist is refused" refuses pack event "$WORK/missing"
for packed in "$FCAP_ROOT"/tests/fuzz/corpus/*.txt; do
  target=$(basename "$packed" .txt)
  check "the corpus of $target belongs to a target" test -e "$FCAP_ROOT/tests/fuzz/${target}_fuzz.cc"
  check "the corpus of $target is as packing writes it" diff "$packed" <(
    "$FCAP_ROOT/tests/fuzz/corpus.py" unpack "$target" "$WORK/each/$target" >/dev/null
    rm -f "$WORK/packed/$target.txt"
    corpus pack "$target" "$WORK/each/$target" >/dev/null
    cat "$WORK/packed/$target.txt")
done
echo "$passed passed, $failed failed"
((failed == 0))
