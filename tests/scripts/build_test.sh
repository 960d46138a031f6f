#!/usr/bin/env bash
# A checkout that was copied together with its build directory builds its own sources, not those of the old place.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"
export FCAP_SKIP_PACKAGES=1

WORK=$(mktemp -d "${TMPDIR:-/tmp}/fcap-build-test.XXXXXX")
trap 'rm -rf "$WORK"' EXIT

# A checkout in miniature, in place of this one.
mkdir "$WORK/first"
cp -a "$FCAP_ROOT/scripts" "$WORK/first"
cat >"$WORK/first/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(miniature LANGUAGES NONE)
add_custom_target(told ALL COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/words ${CMAKE_BINARY_DIR}/told)
CMAKE
cat >"$WORK/first/CMakePresets.json" <<'JSON'
{ "version": 6, "configurePresets": [
  { "name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/${presetName}" } ] }
JSON
echo first >"$WORK/first/words"

failed=0
# builds CHECKOUT WORDS: what is built there is made of these words.
builds() {
  local code=0
  "$WORK/$1/scripts/build.sh" release >"$WORK/log" 2>&1 || code=$?
  if ((code == 0)) && [[ $(cat "$WORK/$1/build/release/told") == "$2" ]]; then
    echo "ok      $1 builds \"$2\""
  else
    echo "FAILED  $1: exit code $code, built \"$(cat "$WORK/$1/build/release/told" 2>/dev/null)\""
    cat "$WORK/log"
    failed=1
  fi
}

builds first first
cp -a "$WORK/first" "$WORK/copy"
echo copy >"$WORK/copy/words"
builds copy copy
mv "$WORK/copy" "$WORK/moved"
echo moved >"$WORK/moved/words"
builds moved moved
builds first first
exit "$failed"
