"""Programs of the source corpus: what is compiled, and with which flags.

Sources are what `tests/corpora.sh DIR sources` leaves in DIR/src.
"""
import glob
import os
import shutil
import subprocess
import sys


def one(pattern):
    found = sorted(glob.glob(pattern))
    if not found:
        sys.exit("nothing matches %s (tests/corpora.sh DIR sources)" % pattern)
    return found[-1]


def all_of(top, pattern, but=()):
    return [f for f in sorted(glob.glob(top + pattern)) if os.path.basename(f) not in but]


def lua(corpora, work):
    top = one(corpora + "/src/lua5.4-*/") + "src/"
    # Debian's build makes this header; it holds one macro.
    with open(os.path.join(work, "lua5.4-deb-multiarch.h"), "w") as header:
        header.write('#define DEB_HOST_MULTIARCH "any"\n')
    return all_of(top, "*.c", ["luac.c"]), \
        ["-I" + top, "-I" + work, "-DLUA_USE_LINUX", "-DLUA_COMPAT_5_3"]


def zlib(corpora, _work):
    top = one(corpora + "/src/zlib-*/")
    return all_of(top, "*.c"), ["-I" + top, "-DHAVE_UNISTD_H"]


def mbedtls(corpora, _work):
    top = one(corpora + "/src/mbedtls-*/")
    return all_of(top, "library/*.c"), ["-I" + top + "include", "-I" + top + "library"]


def sqlite3(corpora, work):
    top = os.path.abspath(one(corpora + "/src/sqlite3-*/"))
    made = os.path.join(work, "sqlite-amalgamation")
    if not os.path.exists(os.path.join(made, "shell.c")):
        os.makedirs(made, exist_ok=True)
        quiet = dict(cwd=made, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([top + "/configure", "--disable-tcl", "--disable-readline"],
                       check=True, **quiet)
        subprocess.run(["make", "sqlite3.c", "shell.c"], check=True, **quiet)
    return [made + "/sqlite3.c", made + "/shell.c"], \
        ["-I" + made, "-DSQLITE_THREADSAFE=1", "-DSQLITE_ENABLE_FTS5",
         "-DSQLITE_ENABLE_RTREE", "-DSQLITE_ENABLE_COLUMN_METADATA"]


def bzip2(corpora, _work):
    top = one(corpora + "/src/bzip2-*/")
    names = "blocksort huffman crctable randtable compress decompress bzlib bzip2"
    return [top + name + ".c" for name in names.split()], ["-I" + top,
                                                           "-D_FILE_OFFSET_BITS=64"]


def cjson(corpora, _work):
    top = one(corpora + "/src/cjson-*/")
    return all_of(top, "cJSON*.c"), ["-I" + top]


def libpng(corpora, work):
    top = one(corpora + "/src/libpng1.6-*/")
    made = os.path.join(work, "libpng-configured")
    os.makedirs(made, exist_ok=True)
    shutil.copy(top + "scripts/pnglibconf.h.prebuilt", made + "/pnglibconf.h")
    # The portable code on both machines.
    return all_of(top, "png*.c", ["pngtest.c"]), \
        ["-I" + made, "-I" + top, "-I" + one(corpora + "/src/zlib-*/"),
         "-DPNG_ARM_NEON_OPT=0", "-DPNG_INTEL_SSE_OPT=0"]


def tinyxml2(corpora, _work):
    top = one(corpora + "/src/tinyxml2-*/")
    return [top + "tinyxml2.cpp", top + "xmltest.cpp"], ["-I" + top]


def fmt(corpora, _work):
    top = one(corpora + "/src/fmtlib-*/")
    return [top + "src/format.cc", top + "src/os.cc"], ["-I" + top + "include", "-std=c++17"]


# A program has a main of its own; the others are libraries.
PROGRAMS = {"lua": lua, "zlib": zlib, "mbedtls": mbedtls, "sqlite3": sqlite3,
            "bzip2": bzip2, "cjson": cjson, "libpng": libpng, "tinyxml2": tinyxml2,
            "fmt": fmt}
WITH_MAIN = {"lua", "sqlite3", "bzip2", "tinyxml2"}
