#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What real objects contain, one row for each construct of a compiler: how it is made, and
what in the object proves that it is there. Every row is compiled, outlined and run as
before. Unless it says otherwise, helpers must be there in the output, or else the row would
prove nothing; where code is refused, the row states the reason. Options as in run.py.
"""
import itertools
import os
import re
import sys
import zlib
from dataclasses import dataclass, field

import run



@dataclass
class Row:
    name: str
    flags: list
    shows: str = ""         # must match what objdump, readelf or nm say of the object
    source: str = "dense.c"  # in fixtures/programs or fixtures/programs-constructs
    targets: tuple = ("x86_64", "aarch64")
    kinds: tuple = ("gcc", "clang")
    link: list = field(default_factory=list)
    libraries: list = field(default_factory=lambda: ["-lm", "-pthread"])
    linkers: tuple = ("bfd", "lld")
    user: str = ""          # the source is made a shared library, and this is its user
    dynamic: bool = False   # linked with the shared libraries of the target
    helpers: bool = True    # something must have been outlined
    refused: str = ""       # the reason that -R must name
    levels: tuple = ("-O2",)
    own_driver: bool = False  # the compiler links: its run-time library is wanted


X86, A64, GCC, CLANG = ("x86_64",), ("aarch64",), ("gcc",), ("clang",)
PIC = ["-fPIC"]
PIE = ["-fPIE"]

HARDENING = [
    Row("stack-protector", ["-fstack-protector-all"], r"__stack_chk_fail"),
    Row("stack-protector-strong", ["-fstack-protector-strong"], r"__stack_chk_fail",
        source="frames.c"),
    Row("stack-clash", ["-fstack-clash-protection"], r"(orq?|str)\s+(\$0x0,|xzr)",
        source="frames.c", targets=X86),
    Row("stack-clash", ["-fstack-clash-protection"], r"str\s+xzr", source="frames.c",
        targets=A64, kinds=GCC),
    Row("cf-protection", ["-fcf-protection=full"], r"endbr64", targets=X86),
    Row("cf-protection-switch", ["-fcf-protection=full"], r"notrack jmp",
        targets=X86),
    Row("cf-protection-twice", ["-fcf-protection=full"], r"endbr64", source="twice.c",
        targets=X86),
    Row("branch-protection", ["-mbranch-protection=standard"], r"bti\s+c", targets=A64,
        source="twice.c"),
    Row("bti-switch", ["-mbranch-protection=bti"], r"bti\s+j", targets=A64),
    Row("pac-leaf", ["-mbranch-protection=pac-ret+leaf"], r"paciasp", targets=A64),
    Row("pac-b-key", ["-mbranch-protection=pac-ret+leaf+b-key"], r"pacibsp", targets=A64),
    Row("pac-retab", ["-mbranch-protection=pac-ret+b-key", "-march=armv8.5-a"], r"retab",
        targets=A64),
    Row("harden-sls", ["-mharden-sls=all"], r"sb\b|dsb\s+sy", targets=A64, helpers=False,
        refused="hardened"),
    Row("harden-sls", ["-mharden-sls=all"], r"int3", targets=X86, helpers=False,
        refused="hardened"),
    Row("thunk-extern", ["-mindirect-branch=thunk", "-mfunction-return=thunk"],
        r"__x86_return_thunk", targets=X86, kinds=GCC, helpers=False, refused="hardened"),
    Row("thunk-inline", ["-mindirect-branch=thunk-inline", "-mfunction-return=thunk-inline"],
        r"pause", targets=X86, kinds=GCC, helpers=False, refused="call into its own middle"),
    Row("retpoline", ["-mretpoline"], r"__llvm_retpoline", targets=X86, kinds=CLANG),
    Row("lvi", ["-mlvi-hardening"], r"lfence", targets=X86, kinds=CLANG, helpers=False,
        refused="indirect jump"),
    Row("slh", ["-mspeculative-load-hardening"], r"cmov|csel", kinds=CLANG, helpers=False),
    Row("kcfi", ["-fsanitize=kcfi"], r"\.kcfi_traps", kinds=CLANG, targets=X86, helpers=False,
        refused="another section holds positions"),
    Row("kcfi", ["-fsanitize=kcfi"], r"brk", kinds=CLANG, targets=A64),
    Row("shadow-call-stack", ["-fsanitize=shadow-call-stack", "-ffixed-x18"],
        r"x30, \[x18\], #8", targets=A64),
    Row("zero-call-used", ["-fzero-call-used-regs=all"], r"xor\s+%edi,%edi|mov\s+x9, #0"),
    Row("trivial-auto-var-init", ["-ftrivial-auto-var-init=pattern"]),
    Row("fortify", ["-D_FORTIFY_SOURCE=2"], r"__\w+_chk"),
    Row("split-stack", ["-fsplit-stack"], r"__morestack", targets=X86, kinds=GCC, helpers=False,
        refused="segmented stack"),
]

PROFILING = [
    Row("pg", ["-pg"], r"mcount", link=["-pg"]),
    Row("pg-fentry", ["-pg", "-mfentry", "-fno-pic"], r"__fentry__", targets=X86, link=["-pg",
        "-no-pie"]),
    Row("pg-fentry-frame", ["-pg", "-mfentry", "-fno-pic", "-fno-omit-frame-pointer"],
        r"__fentry__", source="below_sp.c", targets=X86, link=["-pg", "-no-pie"],
        levels=("-O1", "-Os"), helpers=False),
    Row("red-zone-calls", ["-fno-omit-frame-pointer"], r"sub\s+\$0x80,%rsp", source="below_sp.c",
        targets=X86, levels=("-O2", "-Os"), helpers=False),
    Row("record-mcount", ["-pg", "-mfentry", "-mrecord-mcount", "-fno-pic"], r"__mcount_loc",
        targets=X86, kinds=GCC, link=["-pg", "-no-pie"]),
    Row("patchable", ["-fpatchable-function-entry=2"], r"__patchable_function_entries",
        targets=X86),
    Row("patchable", ["-fpatchable-function-entry=2"], r"__patchable_function_entries",
        targets=A64, kinds=CLANG),
    Row("patchable", ["-fpatchable-function-entry=2"], r"__patchable_function_entries",
        targets=A64, kinds=GCC, helpers=False, refused="unwind entries do not cover"),
    Row("patchable-before", ["-fpatchable-function-entry=4,2"],
        r"__patchable_function_entries", helpers=False, refused="not understood"),
    Row("instrument-functions", ["-finstrument-functions"], r"__cyg_profile_func_enter"),
    Row("xray", ["-fxray-instrument", "-fxray-instruction-threshold=1"], r"xray_instr_map",
        kinds=CLANG, helpers=False),
    Row("coverage", ["--coverage"], r"__gcov", kinds=GCC, link=["--coverage"]),
    Row("profile-generate", ["-fprofile-generate"], r"__gcov", kinds=GCC, link=["--coverage"]),
    Row("stack-size-section", ["-fstack-size-section"], r"\.stack_sizes", kinds=CLANG),
    Row("addrsig", ["-faddrsig"], r"\.llvm_addrsig", kinds=CLANG),
    Row("bb-addr-map", ["-fbasic-block-address-map"], r"\.llvm_bb_addr_map", kinds=CLANG,
        targets=X86, helpers=False, refused="another section holds positions"),
    Row("bb-sections", ["-fbasic-block-sections=all", "-funique-basic-block-section-names"],
        r"\.__part\.", kinds=CLANG, targets=X86, helpers=False),
    Row("sframe", ["-Wa,--gsframe"], r"\.sframe", kinds=GCC, helpers=False),
    Row("profile-instr", ["-fprofile-instr-generate"], r"__llvm_prf", kinds=CLANG, targets=X86,
        link=["-fprofile-instr-generate"], own_driver=True),
    Row("debug-frame", ["-g", "-fno-asynchronous-unwind-tables"], r"\.debug_frame",
        targets=X86, helpers=False, refused="debug information"),
    Row("split-dwarf", ["-g", "-gsplit-dwarf"], r"\.debug_addr", helpers=False,
        refused="split debug information"),
    Row("debug-zstd", ["-g", "-gz=zstd"], r"\.debug_info\s.*C", kinds=CLANG, helpers=False,
        refused="compressed debug information"),
    Row("debug-zlib", ["-g", "-gz"], r"\.debug_info\s.*C"),
    Row("stapsdt", [], r"\.note\.stapsdt", source="probes.c", helpers=False,
        refused="address of an inner label"),
]

CODE_MODEL = [
    Row("no-plt", PIC + ["-fno-plt"], r"GOTPCREL|ADR_GOT_PAGE"),
    Row("no-plt-dynamic", PIC + ["-fno-plt"], dynamic=True),
    Row("dynamic-pie", PIE, dynamic=True, link=["-pie"]),
    Row("large", ["-mcmodel=large", "-fno-pic"], targets=X86, link=["-no-pie"],
        shows=r"R_X86_64_64\s"),
    Row("large-pic", ["-mcmodel=large", "-fPIC"], targets=X86, helpers=False,
        refused="relocation whose meaning", linkers=()),
    Row("medium", ["-mcmodel=medium", "-fno-pic"], targets=X86, link=["-no-pie"]),
    Row("kernel", ["-mcmodel=kernel", "-fno-pic", "-mno-red-zone"], targets=X86, helpers=True,
        link=["-no-pie"], linkers=()),
    Row("large", ["-mcmodel=large", "-fno-pic"], targets=A64, kinds=CLANG, link=["-no-pie"]),
    Row("large", ["-mcmodel=large", "-fno-pic"], targets=A64, kinds=GCC, link=["-no-pie"],
        helpers=False, refused="not understood"),  # literal pools
    Row("tiny", ["-mcmodel=tiny", "-fno-pic"], targets=A64, link=["-no-pie"]),
    Row("literal-loads", ["-mpc-relative-literal-loads", "-fno-pic"], targets=A64, kinds=GCC),
    Row("general-regs", ["-mgeneral-regs-only"], targets=A64,
        source="tls.c"),
    Row("cortex-a53", ["-mfix-cortex-a53-835769", "-mfix-cortex-a53-843419"], targets=A64,
        kinds=GCC, link=["-Wl,--fix-cortex-a53-843419"]),
    Row("cortex-a53-link", ["-mfix-cortex-a53-835769"], targets=A64, kinds=CLANG,
        source="numeric.c", link=["-Wl,--fix-cortex-a53-843419"]),
    Row("outline-atomics", ["-moutline-atomics"], r"__aarch64_", targets=A64,
        source="atomics.c"),
    Row("no-outline-atomics", ["-mno-outline-atomics"], r"ld(a?)xr", targets=A64,
        source="atomics.c", helpers=False),  # all of it is pinned
    Row("lse", ["-march=armv8.1-a"], r"ldadd", targets=A64, source="atomics.c"),
    Row("atomics", [], r"lock", targets=X86, source="atomics.c"),
    Row("vector-pcs", [], r"VARIANT_PCS", targets=A64, source="vectors.c"),
    Row("sve", ["-march=armv8-a+sve"], r"ptrue|whilel", targets=A64, source="vectors.c"),
    Row("sve-auto", ["-march=armv8-a+sve", "-O3"], r"ptrue|whilel", targets=A64),
    Row("vectors", [], source="vectors.c", targets=X86),
    Row("avx2", ["-mavx2", "-mfma", "-O3"], r"vfmadd", source="vectors.c", targets=X86),
    Row("vzeroupper", ["-mavx2", "-O3", "-ftree-vectorize"], r"ymm", targets=X86),
    Row("no-red-zone", ["-mno-red-zone"], targets=X86),
    Row("stackrealign", ["-mstackrealign"], r"and\s+\$0x", targets=X86),
    Row("frame-pointer", ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"],
        source="frames.c"),
    Row("no-async-unwind", ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
    Row("async-unwind", ["-fasynchronous-unwind-tables"], kinds=CLANG),
    Row("no-jump-tables", ["-fno-jump-tables"]),
    Row("outliner", ["-Oz", "-moutline"], r"OUTLINED_FUNCTION", kinds=CLANG, targets=A64,
        helpers=False, refused="address of an inner label"),
    Row("outliner", ["-Oz", "-mllvm", "-enable-machine-outliner"], r"OUTLINED_FUNCTION",
        kinds=CLANG, targets=X86, helpers=False, refused="not understood"),
    Row("homogeneous", ["-mno-outline", "-mllvm", "-homogeneous-prolog-epilog"],
        r"OUTLINED_FUNCTION_EPILOG", kinds=CLANG, targets=A64, levels=("-Oz",)),
    Row("homogeneous-frames", ["-mno-outline", "-mllvm", "-homogeneous-prolog-epilog"],
        r"OUTLINED_FUNCTION_PROLOG", kinds=CLANG, targets=A64, levels=("-Oz",),
        source="frames.c"),
    Row("clones", ["-O3", "-fno-inline-functions-called-once"],
        r"\.(constprop|isra|part)\.", kinds=GCC, helpers=True),
    Row("cold-parts", ["-freorder-blocks-and-partition"], r"\.cold", kinds=GCC,
        source="redzone_cold.c", targets=X86, helpers=False),
    Row("cold-parts-of-callers", ["-O0"], r"\.cold", kinds=GCC, source="cold_parts.c",
        targets=X86, helpers=True),
    Row("fat-lto", ["-flto", "-ffat-lto-objects"], r"\.gnu\.lto_", kinds=GCC, helpers=False),
    Row("no-semantic-interposition", PIC + ["-fno-semantic-interposition"]),
    Row("visibility-hidden", PIC + ["-fvisibility=hidden"]),
    Row("common", ["-fcommon"]),
    Row("no-common-sections", ["-ffunction-sections", "-fdata-sections"],
        link=["-Wl,--gc-sections"]),
    Row("relr", PIE, dynamic=True, link=["-pie", "-Wl,-z,pack-relative-relocs"], targets=X86),
    Row("z-now-relro", PIE, dynamic=True, link=["-pie", "-Wl,-z,now", "-Wl,-z,relro"]),
]

TLS = [Row("tls-" + model, PIC + ["-ftls-model=" + model], source="tls.c", levels=("-O2", "-Os"))
       for model in ("global-dynamic", "local-dynamic", "initial-exec", "local-exec")]
TLS += [
    Row("tls-shared", PIC + ["-DSHARED"], source="tls.c", user="tls_main.c",
        levels=("-O2", "-Os"), linkers=("bfd", "lld", "mold")),
    Row("tls-shared-local", PIC + ["-DSHARED", "-ftls-model=local-dynamic"], source="tls.c",
        user="tls_main.c", linkers=("bfd", "lld", "mold")),
    Row("tls-shared-desc", PIC + ["-DSHARED", "-mtls-dialect=gnu2"], r"TLSDESC",
        source="tls.c", user="tls_main.c", targets=X86, linkers=("bfd", "lld", "mold")),
    Row("tls-desc-relaxed", PIC + ["-mtls-dialect=gnu2"], r"TLSDESC", source="tls.c",
        targets=X86),
    Row("tls-shared-trad", PIC + ["-DSHARED", "-mtls-dialect=trad"], r"TLSGD|TLS_GD",
        source="tls.c", user="tls_main.c", targets=A64, kinds=GCC, linkers=("bfd",)),
    Row("tls-trad", PIC + ["-mtls-dialect=trad"], r"TLSGD", source="tls.c", targets=A64,
        kinds=GCC, linkers=("bfd",)),
    Row("tls-no-plt", PIC + ["-fno-plt", "-DSHARED"], source="tls.c", user="tls_main.c",
        targets=X86, linkers=("bfd", "lld", "mold")),
    Row("tls-size", ["-mtls-size=12", "-fno-pic"], source="tls.c", targets=A64,
        link=["-no-pie"], linkers=("bfd",)),
]

LANGUAGE = [
    Row("nested", [], source="nested.c", kinds=GCC, levels=("-Os", "-O0")),
    Row("nested-goto", ["-DGOTO"], source="nested.c", kinds=GCC, helpers=False,
        refused="not understood"),
    Row("frames", [], source="frames.c", levels=("-O2", "-Os", "-O0")),
    Row("twice", [], source="twice.c", levels=("-O2", "-Os", "-O0")),
    Row("symbols", [], source="symbols.c", levels=("-O2", "-Os")),
    Row("symbols-ifunc", ["-DIFUNC"], r"IFUNC", source="symbols.c"),
    Row("exceptions-in-c", ["-fexceptions"]),
    Row("many-sections", [], r"\.text\.many65999", source="sections.c", kinds=GCC, levels=("-Os",)),
    Row("preserve-registers", ["-fno-ipa-ra"], kinds=GCC),
]

SANITIZERS = [
    Row("asan", ["-fsanitize=address", "-g1", "-gz=none"], r"__asan_",
        link=["-fsanitize=address"], dynamic=True, own_driver=True, targets=X86),
    Row("ubsan", ["-fsanitize=undefined"], r"__ubsan_", link=["-fsanitize=undefined"],
        dynamic=True, own_driver=True, targets=X86),
    Row("tsan", ["-fsanitize=thread"], r"__tsan_", link=["-fsanitize=thread"], dynamic=True,
        own_driver=True, source="atomics.c", targets=X86),
    Row("ubsan-trap", ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"],
        r"ud1|ud2|brk"),
    Row("bounds", ["-fsanitize=bounds", "-fsanitize-undefined-trap-on-error"]),
    Row("tagged-data", PIC, r"8e0000000000", source="tagged.c", targets=A64, kinds=GCC),
    Row("hwasan", ["-fsanitize=hwaddress"], r"__hwasan_", kinds=CLANG, targets=A64, linkers=(),
        helpers=False, refused="relocation whose meaning"),
    Row("safe-stack", ["-fsanitize=safe-stack"], r"__safestack", kinds=CLANG, targets=X86,
        link=["-fsanitize=safe-stack"], own_driver=True),
    Row("sancov", ["-fsanitize-coverage=trace-pc"], r"__sanitizer_cov", kinds=GCC,
        link=["-Wl,--defsym=__sanitizer_cov_trace_pc=abs"]),
]

ROWS = HARDENING + PROFILING + CODE_MODEL + TLS + LANGUAGE + SANITIZERS


def construct_shows(row, target, made):
    """The object holds what the row is about."""
    prefix = "" if target == "x86_64" else "aarch64-linux-gnu-"
    for command in (["readelf", "-WSs"], ["objdump", "-dr", "--no-show-raw-insn"]):
        text = run.must([prefix + command[0]] + command[1:] + [made])
        if re.search(row.shows, text.decode(errors="replace")):
            return
    raise run.Failed("the compiler does not make it: no " + row.shows)


def construct_link(row, target, kind, folder, linker, made, out):
    """A program; or, in a folder of its own, a shared library and its user."""
    driver = list(run.compiler(kind if row.own_driver else "gcc", target)) + row.link + \
        run.LINKER_FLAGS[linker]()
    libraries = row.libraries
    if row.user:
        run.must(driver + ["-shared", made, "-o", os.path.join(folder, "lib%s.so" % out)])
        made = os.path.join(run.FIXTURES, "programs-constructs", row.user)
        libraries = ["-L" + folder, "-l" + out, "-Wl,-rpath,$ORIGIN"]
    elif not row.dynamic:
        driver.append("-static")
    run.must(driver + ["-o", os.path.join(folder, out), made] + libraries)


def construct_run(row, target, folder, program):
    emulator = list(run.RUNNER[target])
    if emulator and (row.dynamic or row.user):
        emulator += ["-L", "/usr/aarch64-linux-gnu"]
    code, out, _ = run.call(emulator + [os.path.join(folder, program)], cwd=folder)
    return code, out


def construct_outlined(args, row, target, made, out, work):
    report = run.must([args.mo_link] + work + ["-R", made, "-o", out]).decode()
    if "--outline" in work and row.helpers and not run.has_helpers(target, out):
        raise run.Failed("nothing was outlined")
    if "--outline" in work and row.refused and row.refused not in report:
        raise run.Failed("-R does not name " + row.refused)


def construct_cases(args):
    for row in ROWS:
        for target, kind, level in itertools.product(row.targets, row.kinds, row.levels):
            name = "construct-%s-%s-%s%s" % (row.name, target, kind, level)

            def case(folder, row=row, target=target, kind=kind, level=level, name=name):
                made, out = os.path.join(folder, "a.o"), os.path.join(folder, "out.o")
                sources = [os.path.join(run.FIXTURES, sub, row.source)
                           for sub in ("programs", "programs-constructs")]
                run.must(run.compiler(kind, target) + [level, "-w"] + row.flags + ["-c"] +
                         [s for s in sources if os.path.exists(s)] + ["-o", made])
                construct_shows(row, target, made)
                turn = zlib.crc32(name.encode()) % max(1, len(row.linkers))
                linkers = row.linkers if args.linkers == "all" else row.linkers[turn:][:1]
                for work, _ in run.works(args, name):
                    construct_outlined(args, row, target, made, out, work)
                    for linker in linkers:
                        construct_link(row, target, kind, folder, linker, made, "before")
                        construct_link(row, target, kind, folder, linker, out, "after")
                        run.compare("%s (%s, %s)" % (name, " ".join(work), linker), target,
                                construct_run(row, target, folder, "before"),
                                construct_run(row, target, folder, "after"))

            yield name, case


if __name__ == "__main__":
    run.SUITES["constructs"] = construct_cases
    sys.exit(run.main(__doc__.split("\n")[0], ["constructs"]))
