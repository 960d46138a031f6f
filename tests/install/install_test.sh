#!/usr/bin/env bash
# tests/install/install_test.sh BUILD_DIR: installs what was built into an empty prefix, and builds and runs the project
# beside this file against it, as an outside user would: by find_package and by pkg-config; with CI=true also against a
# static libfcap, with TLS and without, which is built for it.
FCAP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$FCAP_ROOT/scripts/lib/common.sh"

build=${1:?usage: tests/install/install_test.sh BUILD_DIR}
consumer=$FCAP_ROOT/tests/install
work=$(mktemp -d "${TMPDIR:-/tmp}/fcap-install.XXXXXX")
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
failed=0 passed=0

check() {
  local name=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    echo "ok      $name"
    passed=$((passed + 1))
  else
    echo "FAILED  $name"
    cat "$work/log"
    failed=$((failed + 1))
  fi
}

library_dir() { dirname "$(find "$prefix" -name fcap.pc -print -quit)"; }

by_find_package() {
  cmake -S "$consumer" -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build "$work/cmake" && "$work/cmake/consumer"
}

# statically NAME [OPTION…]: the library alone: also shows that it needs none of what updater, command and tests need. Not
# optimised, which takes half of the time: what it is made of was tested before.
statically() {
  # Within the checkout and by the presets' launcher, so that a compiler cache knows it again.
  local name=$1 built=$FCAP_ROOT/build/$1
  shift
  local launcher="env;CCACHE_BASEDIR=$FCAP_ROOT;CCACHE_NOHASHDIR=1;CCACHE_COMPILERCHECK=content;ccache"
  cmake -S "$FCAP_ROOT" -B "$built" --fresh -G Ninja -DBUILD_SHARED_LIBS=OFF -DFCAP_BUILD_UPDATER=OFF \
    -DFCAP_BUILD_CLI=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" -DCMAKE_INSTALL_PREFIX="$work/$name-prefix" "$@" &&
    cmake --build "$built" --target install &&
    cmake -S "$consumer" -B "$work/$name-consumer" -G Ninja -DCMAKE_PREFIX_PATH="$work/$name-prefix" &&
    cmake --build "$work/$name-consumer" && "$work/$name-consumer/consumer"
}

# A host that must not link OpenSSL.
without_tls() {
  statically static-without-tls -DFCAP_TLS=OFF &&
    nm "$(find "$work/static-without-tls-prefix" -name libfcap.a)" >"$work/symbols" && ! grep -E ' U (SSL|EVP|HMAC)_' "$work/symbols"
}

by_pkg_config() {
  local flags
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(library_dir)
  read -ra flags <<<"$(pkg-config --cflags --libs fcap)"
  g++ -std=c++20 -Wall -Wextra "$consumer/main.cc" -o "$work/by_pkg_config" "${flags[@]}" &&
    LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") "$work/by_pkg_config"
}

# A shared libfcap needs no .pc file but its own.
pkg_config_alone() { PKG_CONFIG_LIBDIR=$(library_dir) pkg-config --cflags --libs fcap; }

# A host that builds fcap as a part of itself keeps its build type, its kind of libraries and its install rules.
as_a_subproject() {
  cmake -S "$consumer/subproject" -B "$work/subproject" -G Ninja -DFCAP_SOURCE="$FCAP_ROOT" &&
    DESTDIR=$work/subproject-installed cmake --install "$work/subproject" &&
    [[ ! -e $work/subproject-installed ]]
}

# Below 1.0 each minor version has a soname of its own.
soname_names_the_minor_version() {
  local version
  version=$(PKG_CONFIG_PATH=$(library_dir) pkg-config --modversion fcap)
  objdump -p "$(library_dir)/../libfcap.so" | grep -E "SONAME +libfcap\\.so\\.${version%.*}\$"
}

# An older standard is told in one line what to change, not in a hundred what it does not know.
older_standards_are_refused() {
  local header errors
  while read -r header; do
    errors=$(printf '#include <%s>\n' "$header" |
      g++ -std=c++17 -fsyntax-only -I "$prefix/include" -x c++ - 2>&1 | grep -E 'error:') || true
    [[ $header == fcap/@(version|export|cplusplus).h ]] && continue
    if [[ $(grep -c 'fcap needs C++20' <<<"$errors") != 1 || $(wc -l <<<"$errors") -gt 2 ]]; then
      printf '%s:\n%s\n' "$header" "$errors"
      return 1
    fi
  done < <(cd "$prefix/include" && find fcap -name '*.h')
}

# dlclose() never unloads a library with unique symbols.
library_can_be_unloaded() { ! nm -D --defined-only "$(library_dir)/../libfcap.so" | grep ' u '; }

# What the README shows as a whole program is one. No server is there, so it prints that as the reason.
readme_program() {
  local flags
  awk '/^## libfcap in 20 lines/ { here = 1 } here && /^```$/ { exit } code { print } here && /^```cpp$/ { code = 1 }' \
    "$FCAP_ROOT/README.md" >"$work/readme.cc"
  grep -q 'int main' "$work/readme.cc" || { echo "README.md has no program below its heading"; return 1; }
  read -ra flags <<<"$(PKG_CONFIG_PATH=$(library_dir) pkg-config --cflags --libs fcap)"
  g++ -std=c++20 -Wall -Wextra -Werror "$work/readme.cc" -o "$work/readme" "${flags[@]}" &&
    LD_LIBRARY_PATH=$(dirname "$(library_dir)") timeout 60 "$work/readme" >"$work/readme.out" || return 1
  cat "$work/readme.out"
  grep -qE '^answered: [a-z_]+$' "$work/readme.out"
}

# The public headers may name nothing of the libraries that fcap uses inside: each compiles alone, without them.
headers_stand_alone() {
  local header
  while read -r header; do
    printf '#include <%s>\n' "$header" |
      g++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$prefix/include" -x c++ - || return 1
  done < <(cd "$prefix/include" && find fcap -name '*.h')
  ! grep -rnE '#include *[<"](hiredis|libpq|spdlog|nlohmann|fmt|date|xxhash|librdkafka|simdjson)' "$prefix/include"
}

# Only fcap's own names may be visible from outside.
symbols_are_hidden() {
  local library
  library=$(find "$prefix" -name 'libfcap.so' -print -quit)
  [[ -n $library ]] || return 0 # a static build hides nothing
  ! nm -DC --defined-only "$library" | grep -E ' [TBDWVu] ' | grep -vE ' (((typeinfo|typeinfo name|vtable|guard variable|non-virtual thunk) (for|to) )?fcap::|_init|_fini)'
}

programs_run() {
  local program
  for program in fcap fcap-updater; do
    [[ -x $prefix/bin/$program ]] || { echo "bin/$program is not installed"; return 1; }
    LD_LIBRARY_PATH=$(dirname "$(library_dir)") "$prefix/bin/$program" --help || return 1
  done
}

# What systemd, an operator and a shell look for.
operations_files() {
  local file
  for file in lib/systemd/system/fcap-{updater.service,sweep.service,sweep.timer} share/fcap/updater.json.sample \
    lib/sysusers.d/fcap.conf share/fcap/redis/acl/{reader,reserver,writer}.acl share/doc/fcap/operations.md share/doc/fcap/cli.md \
    share/bash-completion/completions/fcap{,-updater} share/man/man{1/fcap.1,8/fcap-updater.8,5/updater.json.5}; do
    [[ -f $prefix/$file ]] || { echo "$file is not installed"; return 1; }
  done
  LD_LIBRARY_PATH=$(dirname "$(library_dir)") "$prefix/bin/fcap-updater" check-config \
    --config "$prefix/share/fcap/updater.json.sample"
}

# systemd reads every line of them and finds the program.
units_are_taken() {
  local unit
  mkdir "$work/units"
  for unit in "$prefix"/lib/systemd/system/*; do
    sed "s#=/usr/bin/#=$prefix/bin/#" "$unit" >"$work/units/${unit##*/}"
  done
  systemd-analyze verify --man=no "$work"/units/* >"$work/verified" 2>&1 || { cat "$work/verified"; return 1; }
  # A key that it does not know is a warning to it.
  ! grep -F "$work/units/" "$work/verified"
}

# The migrations with their runner, from where they are installed.
migrations_from_the_prefix() {
  local server conninfo code=0
  server=$(FCAP_SERVICE_OWNER=$$ "$FCAP_ROOT/scripts/service" postgres start --dir "$work" --port 0) ||
    return 1
  conninfo=$(sed -n 's/^conninfo=//p' <<<"$server")
  (unset FCAP_ROOT && cd / && "$prefix/bin/fcap-migrate" "$conninfo" --sample &&
    [[ $("$prefix/bin/fcap-migrate" "$conninfo" --status) == "applied  0008_baseline" ]]) || code=1
  LD_LIBRARY_PATH=$(dirname "$(library_dir)") "$prefix/bin/fcap" rules --check --postgres "$conninfo" || code=1
  "$FCAP_ROOT/scripts/service" postgres stop --dir "$work" || code=1
  return "$code"
}

check "cmake --install" cmake --install "$build" --prefix "$prefix"
check "an outside project by find_package(fcap)" by_find_package
check "an outside project by pkg-config fcap" by_pkg_config
if [[ ${CI:-} == true ]]; then
  check "an outside project with a static libfcap" statically static
  check "a static libfcap without TLS, which needs no OpenSSL" without_tls
fi
check "pkg-config fcap without any other .pc file" pkg_config_alone
check "as a part of a host's build" as_a_subproject
check "the soname names the minor version" soname_names_the_minor_version
check "C++17 gets one clear error" older_standards_are_refused
check "the library can be unloaded" library_can_be_unloaded
check "the program in the README" readme_program
check "every public header stands alone" headers_stand_alone
check "the library shows only its own symbols" symbols_are_hidden
check "the installed programs run" programs_run
check "units, a sample configuration, pages, manual pages and completions are installed" operations_files
check "systemd takes the installed units" units_are_taken
check "the installed migrations apply" migrations_from_the_prefix
echo "$passed passed, $failed failed"
((failed == 0))
