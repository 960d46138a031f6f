#!/usr/bin/env bash
# scripts/build.sh [PRESET] [cmake --build arguments]: installs what is missing, configures once, builds.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"
source "$FCAP_ROOT/scripts/lib/build.sh"

preset=${1:-release}
(($# == 0)) || shift
"$FCAP_ROOT/scripts/packages" build
if [[ $preset == asan ]]; then "$FCAP_ROOT/scripts/packages" test; fi
build_preset "$preset" "$@"
say "built: $(build_dir "$preset")"
