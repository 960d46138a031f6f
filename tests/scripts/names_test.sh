#!/usr/bin/env bash
# tests/type_names.py finds a type that is defined twice, and tests/class_files.py a class that lies in more than two files.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/fcap-names-test.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
passed=0 failed=0

# expect NAME CODE SAID COMMAND…: it ends with this exit code and says this.
expect() {
  local name=$1 expected=$2 said=$3 output code=0
  shift 3
  output=$("$@" 2>&1) || code=$?
  if ((code == expected)) && grep -qF -- "$said" <<<"$output"; then
    echo "ok      $name"
    passed=$((passed + 1))
  else
    printf '%s\n' "FAILED  $name: exit code $code" "$output"
    failed=$((failed + 1))
  fi
}

mkdir -p "$WORK"/{tests,libfcap,updater}
cp "$FCAP_ROOT"/tests/{type_names,class_files}.py "$WORK/tests/"
cd "$WORK"
git init -q .
printf 'class Box {\n  struct Place {};\n};\n' >libfcap/box.h

expect "each type is defined once" 0 "" tests/type_names.py
printf '// class Box {\nconst char* text = "class Box {";\nclass Box;\nclass Item::Options {};\nstruct Options {};\n' >libfcap/item.h
expect "neither a comment, a text, a declaration nor a role" 0 "" tests/type_names.py
printf 'struct Item {\n  enum class Box : int { kOne };\n};\n' >updater/item.h
expect "a type that is defined twice" 1 "Box is defined 2 times: libfcap/box.h:1, updater/item.h:2" tests/type_names.py

for i in 1 2 3; do
  printf 'void Link::g() {}\n' >"libfcap/exempt$i.cc"
  printf 'namespace {\nvoid h() {\n  Box::f();\n}\n}  // Box::f()\nbox::f() {}\n' >"libfcap/use$i.cc"
done
printf 'Box::Box(int) {}\n' >libfcap/box.cc
printf 'const std::map<int, Box*>& a::Box::Place::get(\n    int) const {}\n' >libfcap/box_parts.cc
expect "a class in two files, and one that is exempt" 0 "" tests/class_files.py
printf 'template <class T>\n[[nodiscard]] bool Box::operator==(T) {}\n' >updater/box.cc
expect "a class in three" 1 "Box lies in 3 files: libfcap/box.cc, libfcap/box_parts.cc, updater/box.cc" tests/class_files.py
rm updater/box.cc libfcap/exempt3.cc
expect "an exemption that is no longer needed" 1 "Link is exempt (EXEMPT in tests/class_files.py) and need not be" tests/class_files.py

echo "$passed passed, $failed failed"
((failed == 0))
