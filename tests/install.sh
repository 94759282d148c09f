#!/bin/sh
# Installs Debian packages, those only that are missing. Usage: install.sh build|test|projects
set -eu
build="gcc cmake make pkg-config libelf-dev libdwarf-dev libzydis-dev libxxhash-dev
       zlib1g-dev libjansson-dev libsqlite3-dev"
test="$build check g++ clang-19 lld-19 llvm-19 libclang-rt-19-dev mold python3 elfutils gdb
      gdb-multiarch gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user csmith libcsmith-dev
      tcl libunicorn-dev valgrind dpkg-dev liblua5.4-dev libstdc++-12-dev
      libc6-dev libssl-dev libgmp-dev rustc"
# What other people's programs want beyond that (tests/run/projects.py).
projects="$test unicode-data cargo librust-bstr+default-dev librust-clap-2-dev librust-grep-dev
      librust-grep-searcher+default-dev librust-ignore-dev librust-lazy-static-dev
      librust-log-dev librust-num-cpus-dev librust-regex-dev librust-serde-json-dev
      librust-serde-derive-dev librust-termcolor-dev librust-walkdir-dev"
case "${1:-build}" in
build) wanted=$build ;;
test) wanted=$test ;;
projects) wanted=$projects ;;
*) echo "usage: install.sh build|test|projects" >&2; exit 2 ;;
esac

missing=""
for package in $wanted; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing"
as_root=""
[ "$(id -u)" = 0 ] || as_root=sudo
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
