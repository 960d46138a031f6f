# shellcheck shell=bash
# Shared by every shell script: strict mode and messages.
set -euo pipefail

# Scripts resolve FCAP_ROOT themselves when it was not inherited, so they work from any directory.
FCAP_ROOT=${FCAP_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
export FCAP_ROOT

say() { printf '%s\n' "$*" >&2; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
# Wrong use of a script: exit code 2, like the shell's own commands.
die_usage() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

require_tool() {
  command -v "$1" >/dev/null 2>&1 || die "$1 is missing; run ./dev build once, or: apt-get install $2"
}
