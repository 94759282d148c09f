#!/bin/sh
# The main job on a real program: installs what is missing, builds mo-link, outlines
# Debian's libsqlite3.a together with a small program around it, links, runs the same SQL
# workload with and without, and shows the report.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
build=${BUILD:-$top/build}
work=$build/demo

echo "== looking for what is missing, and installing it"
sh "$here/install.sh" build
echo "== building mo-link in $build (a minute or two on a small machine)"
cmake -S "$top" -B "$build" -DMO_TESTS=OFF >/dev/null
cmake --build "$build" --target mo-link --target ld -j "$(nproc)" >/dev/null
mkdir -p "$work"

archive=$(gcc -print-file-name=libsqlite3.a)
libraries="-lm -lpthread -ldl"
gcc -O2 -c "$top/fixtures/demo/sqldemo.c" -o "$work/sqldemo.o"

echo
echo "== the program as it is"
# shellcheck disable=SC2086
gcc -o "$work/before" "$work/sqldemo.o" "$archive" $libraries
"$work/before" | tee "$work/before.out"

echo
echo "== mo-link --outline --reruns=2 -R sqldemo.o libsqlite3.a -o outlined.o"
"$build/mo-link" --outline --reruns=2 -R "$work/sqldemo.o" "$archive" -o "$work/outlined.o"

echo
echo "== the outlined program"
# shellcheck disable=SC2086
gcc -o "$work/after" "$work/outlined.o" $libraries
"$work/after" | tee "$work/after.out"
cmp "$work/before.out" "$work/after.out"

echo
echo "== the same result, from smaller code:"
size "$work/before" "$work/after"

echo
echo "== to have it below a build: $build/mo-link -- make"
