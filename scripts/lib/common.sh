# shellcheck shell=bash
# Shared by every script: strict mode, messages, and the places things are kept.
set -euo pipefail

# Scripts resolve FCAP_ROOT themselves when it was not inherited, so they work from any directory.
FCAP_ROOT=${FCAP_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
export FCAP_ROOT

# Where the developer's own servers live (./dev up), and what is downloaded once per user.
FCAP_DEV_DIR=${FCAP_DEV_DIR:-$FCAP_ROOT/.dev}
if [[ -z ${FCAP_CACHE_DIR:-} ]]; then
  if [[ -n ${XDG_CACHE_HOME:-} ]]; then
    FCAP_CACHE_DIR=$XDG_CACHE_HOME/fcap
  elif [[ -n ${HOME:-} && -w $HOME ]]; then
    FCAP_CACHE_DIR=$HOME/.cache/fcap
  else
    FCAP_CACHE_DIR=$FCAP_DEV_DIR/cache
  fi
fi
export FCAP_DEV_DIR FCAP_CACHE_DIR

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

# Sleeps without starting a process: polling loops run every few milliseconds.
exec {FCAP_NAP_FD}<> <(:)
nap() { read -rt "$1" -u "$FCAP_NAP_FD" || true; }

# Everything above standard error is closed before a long-lived child starts. Otherwise it would keep its
# caller's pipes open, and a test runner that reads them to the end would wait for a server to finish.
close_inherited_fds() {
  local path fd
  for path in /proc/"$BASHPID"/fd/*; do
    fd=${path##*/}
    if ((fd > 2)); then eval "exec $fd>&-" 2>/dev/null || true; fi
  done
}
