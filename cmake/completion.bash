# Completion of fcap and fcap-updater in bash. The words come from --help, so they are those of the installed version.
# shellcheck shell=bash

_fcap_words() { # what --help of a program (and subcommand) offers: options, and subcommands
  "$@" --help 2>/dev/null | awk '
    { line = $0; while (match(line, /--[a-z][a-z-]*/)) { print substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH) } }
    /^[A-Za-z]+.*:$/ { subcommands = ($0 ~ /^(Subcommands|SUBCOMMANDS):/) }
    subcommands && /^  [a-z]/ { print $1 }'
}

_fcap_complete() {
  local program=$1 word=$2 previous=$3 each subcommand=()
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $each =~ ^[a-z][a-z-]*$ ]]; then
      subcommand=("$each")
      break
    fi
  done
  if [[ $previous =~ -(file|config|rules|snapshot|events|input|log|html|segments)$ ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$(_fcap_words "$program"; ((${#subcommand[@]})) && _fcap_words "$program" "${subcommand[@]}")" -- "$word")
}

complete -o filenames -F _fcap_complete fcap fcap-updater
