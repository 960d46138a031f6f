#!/usr/bin/env bash
# scripts/build.sh [PRESET] [cmake --build arguments]: installs what is missing, configures once, builds into build/PRESET.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
source "$FCAP_ROOT/scripts/lib/common.sh"

preset=${1:-release}
(($# == 0)) || shift
dir=$FCAP_ROOT/build/$preset

# A compiler takes up to 1.5 GB on the largest files; more jobs than that allows would only swap.
build_jobs() {
  awk -v cores="$(nproc)" '/^MemAvailable:/ {jobs = int($2 / 1.5e6); print jobs < 1 ? 1 : jobs < cores ? jobs : cores}' /proc/meminfo
}

"$FCAP_ROOT/scripts/packages" build
if [[ $preset == asan ]]; then "$FCAP_ROOT/scripts/packages" test; fi
cd "$FCAP_ROOT"
# A directory that was copied or moved along with its checkout still names the old place, and would build the sources there.
if [[ ! -f $dir/build.ninja ]] || ! grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$FCAP_ROOT" "$dir/CMakeCache.txt"; then
  cmake --preset "$preset" --fresh >&2 || die "cmake could not configure preset $preset"
fi
cmake --build "$dir" -j "${FCAP_BUILD_JOBS:-$(build_jobs)}" "$@" >&2 || die "the build of preset $preset failed"
say "built: $dir"
