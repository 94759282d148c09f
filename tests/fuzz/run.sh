#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds a fuzz target with clang under ASan and UBSan, makes seeds, runs it for a while.
# Usage: run.sh BUILD-DIRECTORY SECONDS [object|unwind|lsda|debug|link]...
#
# Seeds are small objects compiled from fixtures/programs for both machines, and what lies
# in fixtures/malformed. What the fuzzer finds stays in BUILD-DIRECTORY/corpus-NAME and is
# taken up again the next time; inputs that crash are left in BUILD-DIRECTORY/crash-*.
# An input that ends in an internal error (nothing is written) is a bug of ours, but no danger:
# it counts as a crash only with MO_FUZZ_STRICT=1. FUZZ_SEED=0 makes every run another one.
# With the fixed seed a run ends after a number of inputs that takes half a minute on a quiet
# machine, so that a faster one does not see other inputs; FUZZ_RUNS=-1 lifts that.
# FUZZ_FLAGS are added to the compiler's, for instance -fno-sanitize=pointer-overflow to look
# behind something that is known. Exit status 77 without clang.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$1
seconds=$2
shift 2
[ $# -gt 0 ] || set -- object unwind lsda debug link
clang=$(command -v clang-19 || command -v clang) || exit 77
mkdir -p "$build/seeds"
build=$(cd "$build" && pwd)
sanitize="-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined
    -fno-sanitize-recover=undefined ${FUZZ_FLAGS:-}"
sanitize=$(echo $sanitize)

build_library() {
    cmake -S "$top" -B "$build/mo" -DMO_TESTS=OFF -DCMAKE_C_COMPILER="$clang" \
        -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_FLAGS="-fsanitize=fuzzer-no-link $sanitize" >/dev/null
    cmake --build "$build/mo" --target mo -j "$(nproc)" >/dev/null
}

build_target() {
    # shellcheck disable=SC2086
    "$clang" -std=c17 -fsanitize=fuzzer $sanitize -DMO_LIBFUZZER \
        -D_POSIX_C_SOURCE=200809L -I"$top/include" -I"$top" "$here/fuzz_$1.c" \
        "$build/mo/libmo.a" -lelf -ldwarf -lxxhash -lz -ljansson -lZydis -o "$build/fuzz_$1"
}

compile_seeds() {
    [ -f "$build/seeds/.done" ] && return
    for target in x86_64 aarch64; do
        for source in "$top"/fixtures/programs/*.c; do
            name=$(basename "$source" .c)
            for level in "-Os" "-O1 -fPIC -ffunction-sections" "-O2 -fexceptions"; do
                out="$build/seeds/$target-$name$(echo "$level" | tr -d ' ').o"
                # shellcheck disable=SC2086
                "$clang" --target="$target-linux-gnu" $level -w -c "$source" -o "$out" ||
                    rm -f "$out"
            done
        done
    done
    : >"$build/seeds/.done"
}

# A seed of the unwind target: a byte that chooses the machine, then an .eh_frame.
unwind_seeds() {
    for object in "$build"/seeds/*.o; do
        frames=$1/$(basename "$object" .o)
        llvm-objcopy-19 --dump-section .eh_frame="$build/frames" "$object" /dev/null \
            2>/dev/null || continue
        case $object in
        */aarch64*) choice='\001\003' ;;
        *) choice='\000\002' ;;
        esac
        # shellcheck disable=SC2059
        { printf "$choice" | head -c 1; cat "$build/frames"; } >"$frames-one"
        # shellcheck disable=SC2059
        { printf "$choice" | tail -c 1; cat "$build/frames"; } >"$frames-two"
    done
}

# A seed of the target for call-site tables: five bytes (see there), then one section.
lsda_seeds() {
    for target in x86_64 aarch64; do
        for source in "$top"/fixtures/programs-cxx/*.cc; do
            "$clang" --target="$target-linux-gnu" -O1 -w -std=c++14 -c "$source" \
                -o "$build/thrower.o" 2>/dev/null || continue
            llvm-objcopy-19 --dump-section .gcc_except_table="$build/tables" \
                "$build/thrower.o" /dev/null 2>/dev/null || continue
            { printf '\000\000\000\000\377'; cat "$build/tables"; } \
                >"$1/$target-$(basename "$source" .cc)"
        done
    done
    # Two small ones, the second with a type.
    printf '\002\004\000\000\200\377\377\001\004\010\004\000\000' >"$1/two"
    printf '\000\000\000\000\000\000\000\000\377\233\015\001\004\010' >>"$1/two"
    printf '\004\020\001\001\000\000\000\000\000\000' >>"$1/two"
}

# Small objects with debug information of every version.
debug_seeds() {
    for target in x86_64 aarch64; do
        for program in aligned redzone_frame redzone_index; do
            for version in 2 3 4 5; do
                "$clang" --target="$target-linux-gnu" -O1 -g -gdwarf-$version -w -c \
                    "$top/fixtures/programs/$program.c" -o "$1/$target-$program-$version.o"
                [ "$target" = x86_64 ] || continue
                gcc -O2 -g -gdwarf-$version -w -c "$top/fixtures/programs/$program.c" \
                    -o "$1/gcc-$program-$version.o"
            done
        done
    done
}

seed() {
    corpus=$build/corpus-$1
    [ -d "$corpus" ] && return
    mkdir -p "$corpus"
    if [ "$1" = unwind ]; then
        unwind_seeds "$corpus"
        return
    fi
    if [ "$1" = lsda ]; then
        lsda_seeds "$corpus"
        return
    fi
    if [ "$1" = debug ]; then
        debug_seeds "$corpus"
        return
    fi
    cp "$build"/seeds/*.o "$corpus"
    for file in "$top"/fixtures/malformed/*.o; do
        cp "$file" "$corpus/malformed-$(basename "$file")"
    done
}

runs_of() {
    case $1 in
    object) echo 200000 ;;
    unwind) echo 400000 ;;
    lsda) echo 900000 ;;
    debug) echo 300000 ;;
    *) echo 10000 ;;
    esac
}

build_library
compile_seeds
for name in "$@"; do
    build_target "$name"
    seed "$name"
    echo "fuzz_$name: $seconds seconds"
    # libFuzzer says much; the last lines hold the statistics or the report of a crash.
    "$build/fuzz_$name" -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" \
        -runs="${FUZZ_RUNS:-$(runs_of "$name")}" -timeout=20 -rss_limit_mb=3000 \
        -malloc_limit_mb=1000 -max_len=32768 -artifact_prefix="$build/crash-$name-" -print_final_stats=1 \
        "$build/corpus-$name" >"$build/$name.log" 2>&1 ||
        { tail -n 60 "$build/$name.log"; exit 1; }
    grep -E "^stat::number_of_executed|^stat::average|DONE" "$build/$name.log"
done
