#!/usr/bin/env bash
# scripts/lint.sh [--quick]: formatting, scripts and tidiness; without --quick also clang-tidy over every source
# file and the pages that are generated from the code.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"

SOURCE_LINES_MAX=500 # STYLE: about 400
PUBLIC_HEADER_LINES_MAX=250

[[ $# == 0 || $* == --quick ]] || die_usage "scripts/lint.sh [--quick]"
quick=$#
cd "$FCAP_ROOT"
failed=0 passed=0

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

# Files of the project, committed or about to be; a deleted one is still listed by git.
project_files() {
  local file
  while IFS= read -r -d '' file; do
    if [[ -f $file ]]; then printf '%s\0' "$file"; fi
  done < <(git ls-files -z -co --exclude-standard -- "$@")
}

formatted() { project_files '*.cc' '*.h' | xargs -0r clang-format-14 --dry-run -Werror; }

scripts_clean() {
  local file scripts=()
  while IFS= read -r -d '' file; do
    if [[ $(head -c 64 "$file" | head -n 1) == '#!'*bash* || $file == scripts/lib/*.sh ]]; then scripts+=("$file"); fi
  done < <(project_files dev .ci scripts tests examples bench)
  shellcheck "${scripts[@]}"
}

# lines_over MAX PATTERN…: the files with more lines.
lines_over() {
  local max=$1
  shift
  project_files "$@" | xargs -0r wc -l | awk -v max="$max" '$2 != "total" && $1 > max {print $2 ": " $1 " lines, at most " max}'
}

# The width of lines is clang-format's affair.
sizes() { ! { lines_over "$PUBLIC_HEADER_LINES_MAX" 'include/fcap/*.h' && lines_over "$SOURCE_LINES_MAX" '*.cc' '*.h'; } | grep .; }

# Unfinished work, paths of the machine it was written on, and names that say nothing.
words() {
  local bad=0 unfinished='TO''DO|FIX''ME|X''XX|HA''CK' machine='(^|[^[:alnum:]_.-])/(wo''rk|ho''me)/[[:alnum:]]|/bash''_jobs'
  if project_files '*.cc' '*.h' '*.sh' '*.sql' '*.py' '*.cmake' '*CMakeLists.txt' '*.md' dev scripts .ci |
    xargs -0r grep -nEw "$unfinished"; then bad=1; fi
  if project_files | xargs -0r grep -nEI "$machine"; then bad=1; fi
  if project_files '*.cc' '*.h' | tr '\0' '\n' | grep -E '(^|[/_])(util|utils|helper|helpers|manager)[_.]'; then bad=1; fi
  return "$bad"
}

# Plain English: "again", "permanently" and "must be one of", and "per" for a rate.
english() {
  local unit='second|line|candidate|element|row|check|swap|message|batch'
  local worst="\\b(anew|for ever|is none of|oftener|not to be had|come round)\\b|\\b(once|one) an? ($unit)\\b"
  ! project_files '*.cc' '*.h' '*.md' '*.service' '*.sample' |
    xargs -0r grep -nE "$worst|\\b(events|checks|requests|messages|bytes|views|pages|candidates|rules|µs) an? ($unit|user|request|minute)\\b"
}

# A library does not know which command line it is used from.
no_flags_in_libraries() { ! project_files 'libfcap/*' 'kafka/*' | xargs -0r grep -nE '"[^"]*--[a-z][^"]*"'; }

# Tables, code and what is indented may be wider, as may the pages that a program writes.
prose_is_wrapped() {
  local file
  ! while IFS= read -r -d '' file; do
    if grep -q '^<!-- Generated' "$file"; then continue; fi
    sed "/^ *\`\`\`/,/^ *\`\`\`/d" "$file" | LC_ALL=C.UTF-8 grep -E '^[^| <].{100}' | sed "s|^|$file: |" || true
  done < <(project_files '*.md') | grep .
}

tidy() {
  # Only files that the build knows, and none that it generates.
  run-clang-tidy-14 -quiet -p build/dev -j "$(nproc)" "^$FCAP_ROOT/(libfcap|updater|cli|command_line|kafka|tests|bench|examples)/.*\\.cc$" \
    >build/dev/clang-tidy.log 2>&1 || { grep -E '(warning|error):' build/dev/clang-tidy.log | sort -u; return 1; }
}

generated_pages() { ctest --test-dir build/dev --output-on-failure --no-tests=error -L docs; }

((quick)) && "$FCAP_ROOT/scripts/packages" test || "$FCAP_ROOT/scripts/packages" build test lint
check "formatting (clang-format-14)" formatted
check "scripts (shellcheck)" scripts_clean
check "sizes of files" sizes
check "words" words
check "plain English" english
check "libraries name no command-line flags" no_flags_in_libraries
check "prose wrapped at 100 columns" prose_is_wrapped
if ((!quick)); then
  "$FCAP_ROOT/scripts/build.sh" dev
  check "clang-tidy" tidy
  check "generated pages are current" generated_pages
fi
echo "$passed passed, $failed failed"
((failed == 0))
