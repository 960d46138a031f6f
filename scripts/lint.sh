#!/usr/bin/env bash
# scripts/lint.sh [--quick]: formatting, scripts and tidiness; without --quick also clang-tidy over every source
# file and the pages that are generated from the code.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"
source "$FCAP_ROOT/scripts/lib/build.sh"

SOURCE_LINES_MAX=500 # STYLE: about 400
PUBLIC_HEADER_LINES_MAX=250

quick=0
case ${1:-} in
  --quick) quick=1 ;;
  '') ;;
  *) die_usage "scripts/lint.sh [--quick]" ;;
esac
cd "$FCAP_ROOT"
failed=0 passed=0

check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok      $name"
    passed=$((passed + 1))
  else
    echo "FAILED  $name"
    printf '%s\n' "$output"
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

lines_over() {
  local max=$1 file count bad=0
  shift
  while IFS= read -r -d '' file; do
    count=$(wc -l <"$file")
    if ((count > max)); then
      echo "$file: $count lines, at most $max"
      bad=1
    fi
  done < <(project_files "$@")
  return "$bad"
}

# The width of lines is clang-format's affair.
sizes() {
  local bad=0
  lines_over "$PUBLIC_HEADER_LINES_MAX" 'include/fcap/*.h' || bad=1
  lines_over "$SOURCE_LINES_MAX" '*.cc' '*.h' || bad=1
  return "$bad"
}

# Unfinished work, paths of the machine it was written on, and names that say nothing.
words() {
  local bad=0 unfinished='TO''DO|FIX''ME|X''XX|HA''CK' machine='(^|[^[:alnum:]_.-])/(wo''rk|ho''me)/[[:alnum:]]|/bash''_jobs'
  if project_files '*.cc' '*.h' '*.sh' '*.sql' '*.py' '*.pl' '*.cmake' '*CMakeLists.txt' '*.md' dev scripts .ci |
    xargs -0r grep -nEw "$unfinished"; then bad=1; fi
  if project_files | xargs -0r grep -nEI "$machine"; then bad=1; fi
  if project_files '*.cc' '*.h' | tr '\0' '\n' | grep -E '(^|[/_])(util|utils|helper|helpers|manager)[_.]'; then bad=1; fi
  return "$bad"
}

# "Cut off the network and everything below redis/ and config/ still builds": who may include whom.
arrows() {
  local bad=0
  if project_files libfcap/ledger libfcap/rules | xargs -0r \
    grep -nE '#include ["<](redis|config|updater|cli|kafka|checker)/|#include <(hiredis|libpq-fe|librdkafka|spdlog)'; then bad=1; fi
  if project_files libfcap include | xargs -0r grep -nE '#include ["<](updater|cli|kafka)/|#include <librdkafka'; then bad=1; fi
  if project_files kafka | xargs -0r grep -nE '#include ["<](redis|config|rules|ledger|checker|events|updater|cli)/'; then bad=1; fi
  if project_files include | xargs -0r grep -nE '#include [<"](hiredis|libpq|spdlog|nlohmann|fmt|date/|xxhash)'; then bad=1; fi
  return "$bad"
}

tidy() {
  local dir
  dir=$(build_dir dev)
  # Only files that the build knows, and none that it generates.
  run-clang-tidy-14 -quiet -p "$dir" -j "$(nproc)" "^$FCAP_ROOT/(libfcap|updater|cli|command_line|kafka|tests|bench|examples)/.*\\.cc$" \
    >"$dir/clang-tidy.log" 2>&1 || { grep -E '(warning|error):' "$dir/clang-tidy.log" | sort -u; return 1; }
}

generated_pages() { ctest --test-dir "$(build_dir dev)" --output-on-failure --no-tests=error -L docs; }

((quick)) && "$FCAP_ROOT/scripts/packages" test || "$FCAP_ROOT/scripts/packages" build test lint
check "formatting (clang-format-14)" formatted
check "scripts (shellcheck)" scripts_clean
check "sizes of files" sizes
check "words" words
check "includes point one way" arrows
if ((!quick)); then
  build_preset dev
  check "clang-tidy" tidy
  check "generated pages are current" generated_pages
fi
echo "$passed passed, $failed failed"
((failed == 0))
