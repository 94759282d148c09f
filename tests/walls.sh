#!/bin/sh
# SPDX-License-Identifier: MIT
# The walls of the house: fails when a folder includes what it must not know, or when the
# library has data that can change. Usage: walls.sh [LIBMO.A]
#
#   libelf only in src/object; libdwarf only in src/unwind; Zydis only in targets/x86_64;
#   xxhash only in src/base; zlib only in src/object; jansson only in src/report
#   suffixtree  knows the arena and nothing else
#   targets     know no unwinding (what mo/program.h brings may pass by) and not each other
#   outliner    knows neither the front door nor the insides of any other folder; its
#               verifier shares no header with the stages that it checks
#   src/object, src/unwind, src/debug, src/base  know nothing above them
#   src/ld      knows the front door, objects and what is read and written, no outlining
#   include/mo  names no library
# Long files and functions are listed; they do not fail the check.
set -eu
cd "$(dirname "$0")/.."
bad=0

complain() {
    echo "WALL $1"
    bad=1
}

# "file:line: header" of each #include in the files given.
includes() {
    for file in "$@"; do
        [ -f "$file" ] || continue
        awk -v file="$file" '/^[ \t]*#[ \t]*include[ \t]/ {
            header = $0
            sub(/^[^"<]*["<]/, "", header)
            sub(/[">].*$/, "", header)
            print file ":" FNR ": " header
        }' "$file"
    done
}

# only WHAT PATTERN FOLDER: headers like this are included in this folder alone.
only() {
    found=$(includes $sources | grep -E ": ($2)" | grep -v "^$3/" || true)
    [ -z "$found" ] || complain "$1 outside of $3:
$found"
}

# may FOLDER PATTERN: the headers of the project in this folder are of these kinds.
may() {
    found=$(includes "$1"/*.[ch] | grep -vE ": ($2)$" || true)
    [ -z "$found" ] || complain "$1 includes what it must not know:
$found"
}

system='[a-z]+\.h|sys/[a-z]+\.h'
base='mo/(base|arena|array|bytes|error|parallel|table)\.h'
own='[a-z_0-9]+\.h' # a header of the folder itself: has no slash
model='mo/(object|insn|refusal)\.h'
program='mo/(target|decoder|superset|unwind|lsda|debug|program|plan|suffixtree)\.h'

sources=$(find include src outliner suffixtree targets -name '*.[ch]')
only libelf 'libelf|gelf\.h|elfutils/|nlist\.h' src/object
only libdwarf 'libdwarf|dwarf\.h' src/unwind
only Zydis 'Zydis|Zycore' targets/x86_64
only xxhash 'xxh' src/base
only zlib 'zlib\.h' src/object
only jansson 'jansson' src/report

may include/mo "$system|mo/[a-z_]+\.h"
may suffixtree 'std(bool|def|int|lib)\.h|string\.h|assert\.h|mo/(suffixtree|base|arena|array)\.h'
may src/base "$system|xxhash\.h|$base|$own"
may src/object "$system|libelf\.h|gelf\.h|$base|mo/object\.h|$own"
may src/unwind "$system|libdwarf/[a-z]+\.h|libdwarf\.h|dwarf\.h|$base|mo/(object|refusal|unwind|lsda)\.h|$own"
may src/ld "$system|$base|mo/(object|options|inputs|outputs|link)\.h|$own"
may src/debug "$system|$base|mo/(object|refusal|debug)\.h|$own"
may outliner "$system|$base|$model|$program|outliner/[a-z]+/[a-z]+\.h|$own"
may targets "$system|$base|mo/(insn|object|target|decoder)\.h"
for folder in targets/*/; do
    may "${folder%/}" "$system|Zydis/[A-Za-z]+\.h|$base|$model|mo/(target|program)\.h|$own"
done
# The checker shares nothing with those whom it checks.
found=$(includes outliner/verify/*.[ch] |
    grep -E ': (outliner/)?([a-z]+/)?(rewrite|choose|lift)\.h' || true)
[ -z "$found" ] || complain "the verifier shares code with what it verifies:
$found"
# Headers without a slash must lie beside the file: no way in through the include path.
for file in $sources; do
    folder=$(dirname "$file")
    for header in $(sed -n 's/^#include "\([^"/]*\)".*/\1/p' "$file"); do
        [ -f "$folder/$header" ] || complain "$file includes $header of another folder"
    done
    found=$(grep -n '^#include "\.\./' "$file" || true)
    [ -z "$found" ] || complain "$file goes around a wall: $found"
done

# Data that can change, at file scope or static: none. .data.rel.ro is constant after
# loading, and memory that waits to be used again is nobody's. A library with sanitizers or coverage counters in it is not looked at.
if [ $# -gt 0 ] && ! nm "$1" 2>/dev/null | grep -qE '__asan|__ubsan|__llvm_prf|__gcov'; then
    found=$(nm -f sysv "$1" | awk -F'|' '
        /^[^|]*\.o:/ || /\[.*\.o\]:/ { object = $0 }
        NF == 7 { gsub(/ /, "", $7); gsub(/ /, "", $1); gsub(/ /, "", $4) }
        object !~ /blocks\.c/ && NF == 7 && $4 != "SECTION" && $7 !~ /^\.data\.rel\.ro/ &&
            ($7 ~ /^\.(data|bss|tdata|tbss)/ || $7 == "*COM*") { print object, $1, $7 }')
    [ -z "$found" ] || complain "data that can change in $1:
$found"
fi

# shellcheck disable=SC2086
wc -l $sources | awk '$2 != "total" && $1 > 600 { print "LONG", $2 ": " $1 " lines" }'
for file in $sources; do
    awk -v file="$file" '
        /^{/ { start = FNR; name = before }
        /^}/ && start { if (FNR - start + 1 > 60)
            print "LONG " file ":" start ": " FNR - start + 1 " lines: " name; start = 0 }
        /^[A-Za-z]/ { before = $0 }' "$file"
done
exit $bad
