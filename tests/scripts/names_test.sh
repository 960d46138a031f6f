#!/usr/bin/env bash
# scripts/rename.py renames what its list says and nothing else, tests/type_names.py finds a type that is defined twice, and
# tests/class_files.py a class that lies in more than two files.
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

mkdir -p "$WORK"/{scripts,tests,libfcap,updater,docs}
cp "$FCAP_ROOT/scripts/rename.py" "$WORK/scripts/"
cp "$FCAP_ROOT"/tests/{type_names,class_files}.py "$WORK/tests/"
cp "$FCAP_ROOT/.clang-format" "$WORK/"
cd "$WORK"
git init -q .
cat >libfcap/box.h <<'END'
class Box {
  // Place is where it stands. A letter has a Place; pump() moves it.
  struct Place {
    const char* place = "Place";
  };
  Place place;
  Canary::Place other;
  int pump = 0;
  void pump();
};
END
cat >updater/user.cc <<'END'
struct Place;  // of the canary
template <>
struct hash<Place> {};
using Place = int;
Box::Place mine(Place given) { return box.pump(given); }
END
cat >docs/page.md <<'END'
A Place is not a `Box::Place`, which is as long as it takes to fill this line of the page to its last.
END
cat >names.txt <<'END'
// A comment
Box::Place LetterPosition libfcap/box.*
pump() tick() libfcap/* updater/*
Nothing Something libfcap/*
END

expect "a list that is not applied" 1 "Box::Place -> LetterPosition: 5 in 3 files; comments to look at: libfcap/box.h" scripts/rename.py --check names.txt
expect "no file has changed" 0 "struct Place {" cat libfcap/box.h
expect "a line that matches nothing" 0 "Nothing -> Something: WARNING: matches nothing" scripts/rename.py names.txt
expect "a list that is applied" 0 "WARNING" scripts/rename.py --check names.txt
expect "types, functions, and words of comments that are certain" 0 "identical" diff -s libfcap/box.h - <<'END'
class Box {
  // Place is where it stands. A letter has a LetterPosition; tick() moves it.
  struct LetterPosition {
    const char* place = "Place";
  };
  LetterPosition place;
  Canary::Place other;
  int pump = 0;
  void tick();
};
END
expect "other files" 0 "using Place = int; Box::LetterPosition mine(Place given) { return box.tick(given); }" tr -s "\n" " " <updater/user.cc
expect "code of pages" 0 "A Place is not a \`Box::LetterPosition\`," cat docs/page.md
echo "Canary Box libfcap/*" >taken.txt
expect "a new name that is taken" 1 "REFUSED: Box is already a word in libfcap/box.h" scripts/rename.py taken.txt
expect "nothing is written then" 0 "Canary::Place other;" cat libfcap/box.h

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
