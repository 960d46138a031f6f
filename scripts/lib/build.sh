# shellcheck shell=bash
# Building one of CMakePresets.json's presets into build/<preset>.

build_dir() { printf '%s/build/%s' "$FCAP_ROOT" "$1"; }

# A compiler takes up to 1.5 GB on the largest files; more jobs than that allows would only swap.
build_jobs() {
  local cores available_mb jobs
  cores=$(nproc)
  available_mb=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
  jobs=$((available_mb / 1500))
  ((jobs < cores)) || jobs=$cores
  ((jobs >= 1)) || jobs=1
  printf '%s' "${FCAP_BUILD_JOBS:-$jobs}"
}

# Whether a build directory was configured from this very checkout. One that was copied or moved along with its
# checkout still names the old place, and would build the sources there.
configured_here() {
  local home
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$1/CMakeCache.txt" 2>/dev/null)
  [[ -f $1/build.ninja && -n $home && $home -ef $FCAP_ROOT ]]
}

# build_preset PRESET [cmake --build arguments]
build_preset() {
  local preset=$1 dir
  dir=$(build_dir "$preset")
  shift
  if ! configured_here "$dir"; then
    (cd "$FCAP_ROOT" && cmake --preset "$preset" --fresh) >&2 || die "cmake could not configure preset $preset"
  fi
  cmake --build "$dir" -j "$(build_jobs)" "$@" >&2 || die "the build of preset $preset failed"
}
