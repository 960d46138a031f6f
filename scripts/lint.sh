#!/usr/bin/env bash
# scripts/lint.sh [--quick]: formatting, scripts and tidiness; without --quick also clang-tidy over every source
# file and the pages that are generated from the code.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"

[[ $# == 0 || $* == --quick ]] || die_usage "scripts/lint.sh [--quick]"
quick=$#
cd "$FCAP_ROOT"
failed=0 passed=0

# check NAME COMMAND…: what the command says is shown when it fails.
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok      $name"
    passed=$((passed + 1))
  else
    printf '%s\n' "FAILED  $name" "$output"
    failed=$((failed + 1))
  fi
}

# Files of the project, committed or about to be; one that was deleted is still listed by git.
project_files() { git ls-files -co --exclude-standard -- "$@" | xargs ls -d 2>/dev/null || true; }

# at_most LINES FILES…
at_most() {
  local max=$1
  shift
  project_files "$@" | xargs wc -l | awk -v max="$max" '$2 != "total" && $1 > max {print; bad = 1} END {exit bad}'
}

# absent PATTERN FILES…: nothing in these files matches.
absent() {
  local pattern=$1
  shift
  ! git grep --untracked -nEI "$pattern" -- "$@"
}

formatted() { project_files '*.cc' '*.h' | xargs clang-format-14 --dry-run -Werror; }

shell_scripts() { project_files dev .ci scripts sql tests examples bench | xargs awk 'FNR == 1 && /^#.*bash/ {print FILENAME}'; }
scripts_clean() { shell_scripts | xargs shellcheck; }

telling_names() { ! project_files '*.cc' '*.h' | grep -E '(^|[/_])(util|utils|helper|helpers|manager)[_.]'; }

# Tables, code and comments may be wider.
prose_is_wrapped() {
  local file
  ! for file in $(project_files '*.md'); do
    sed "/^ *\`\`\`/,/^ *\`\`\`/d" "$file" | LC_ALL=C.UTF-8 grep -E '^.{101}' | grep -vE '^( *\||    |<!--)' | sed "s|^|$file: |" || true
  done | grep .
}

tidy() {
  # Only files that the build knows, and none that it generates; without the option that clang does not know.
  mkdir -p build/dev/tidy && sed 's/ -fno-gnu-unique//' build/dev/compile_commands.json >build/dev/tidy/compile_commands.json
  run-clang-tidy-14 -quiet -p build/dev/tidy -j "$(nproc)" "^$FCAP_ROOT/(libfcap|updater|cli|command_line|kafka|tests|bench|examples)/.*\\.cc$" \
    >build/dev/clang-tidy.log 2>&1 || { grep -E '(warning|error):' build/dev/clang-tidy.log | sort -u; return 1; }
}

generated_pages() { ctest --test-dir build/dev --output-on-failure --no-tests=error -L docs; }

texts=('*.cc' '*.h' '*.md' '*.py' '*.sh' '*.sql' '*.cmake' '*CMakeLists.txt' '*.service' '*.sample' dev .ci scripts sql/migrate bench/run)
rated='element|events|checks|requests|messages|bytes|views|pages|candidates|rules|mistake|id|branch|bits|µs'
unit='second|line|candidate|element|row|check|swap|message|batch|run|stray|entry|look-up|setting|stripe'

((quick)) && "$FCAP_ROOT/scripts/packages" test || "$FCAP_ROOT/scripts/packages" build test lint
check "formatting (clang-format-14)" formatted
check "scripts (shellcheck)" scripts_clean
check "sizes of sources" at_most 500 '*.cc' '*.h' # STYLE: about 400; how wide lines are is clang-format's affair
check "sizes of public headers" at_most 250 'include/fcap/*.h'
check "names of files" telling_names
check "no unfinished work" absent '\b(TO''DO|FIX''ME|X''XX|HA''CK)\b' '*.cc' '*.h' '*.sh' '*.sql' '*.py' '*.cmake' '*CMakeLists.txt' '*.md' dev scripts sql/migrate .ci
check "no paths of one machine" absent '(^|[^[:alnum:]_.-])/(wo''rk|ho''me)/[[:alnum:]]|/bash''_jobs'
# "again", "permanently" and "must be one of", and "per" for a rate.
check "plain English" absent '\b(an''ew|for ev''er|is no''ne of|often''er|not to be h''ad|come ro''und)\b' "${texts[@]}"
check "rates in plain English" absent "\\b((once|one|lines?) an? ($unit)|($rated) an? ($unit|user|request|minute))\\b" "${texts[@]}"
# A sentence has a subject and a verb.
check "no comments that begin with Of" absent '(//+<? |^ *# |"""|[.;:] )O''f [^ ]' .clang-tidy '*.cc' '*.h' '*.py' '*.sh' '*.sql' '*.cmake' '*CMakeLists.txt' dev scripts
# A library does not know which command line it is used from.
check "libraries name no command-line flags" absent '"[^"]*--[a-z][^"]*"' 'libfcap/*' 'kafka/*'
check "prose wrapped at 100 columns" prose_is_wrapped
check "names in docs/inside.md exist" tests/inside.py
check "one type per name" tests/type_names.py
check "one class per file" tests/class_files.py
if ((!quick)); then
  "$FCAP_ROOT/scripts/build.sh" dev
  check "clang-tidy" tidy
  check "generated pages are current" generated_pages
fi
echo "$passed passed, $failed failed"
((failed == 0))
