#!/bin/sh
# Installs what the tests need, builds with warnings as errors, passes the tests.
# Usage: all.sh [ctest arguments], for instance `all.sh -L unit`; without arguments
# everything but the label `long`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
build=${BUILD:-$top/build}

sh "$here/install.sh" test
sh "$here/corpora.sh" "$build/corpora" archives
cmake -S "$top" -B "$build" -DMO_TESTS=ON -DMO_WERROR=ON \
    -DMO_CORPORA="$build/corpora" >/dev/null
cmake --build "$build" -j "$(nproc)"
cd "$build"
[ $# -gt 0 ] || set -- -LE long
ctest -j "$(nproc)" --output-on-failure "$@"
