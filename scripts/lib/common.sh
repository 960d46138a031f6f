# shellcheck shell=bash
# Shared by every shell script: strict mode and messages. FCAP_ROOT is where the checkout is.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}
# Wrong use of a script: exit code 2, like the shell's own commands.
die_usage() {
  say "error: $*"
  exit 2
}
