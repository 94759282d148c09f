/* SPDX-License-Identifier: MIT
 *
 * The linker whose place we have taken.
 *
 * A driver finds us under the name of the linker that it wants (ld, ld.bfd, ld.gold,
 * ld.lld, ld.mold) in a folder that -B or COMPILER_PATH put first. The real one is what
 * it would have found next: GCC tells its other folders in COMPILER_PATH (collect2
 * looks there, too); Clang looks beside itself, and then in PATH for the name with the
 * target in front. MO_LINK_LD overrules all of that with a path, or a name to look for.
 *
 * We know ourselves by device and inode, so links and other spellings of our folder do
 * not lead in a circle; a script that calls us again does, which a counter in the
 * environment ends.
 */
#include "ld.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

struct search {
    struct arena *session;
    struct stat self;
};

/* Emulations (-m) and the names that cross binutils and Clang give their targets. */
static const struct {
    const char *emulation, *prefix;
} targets[] = {
    {"aarch64linux", "aarch64-linux-gnu-"}, {"aarch64elf",   "aarch64-none-elf-"},
    {"elf_x86_64",   "x86_64-linux-gnu-"},  {"armelf_linux_eabi", "arm-linux-gnueabihf-"},
    {"elf64lriscv",  "riscv64-linux-gnu-"}, {"elf_i386",     "i686-linux-gnu-"},
};

/* What runs here is built by the plain names. */
static bool is_native(const char *emulation)
{
    struct utsname system;
    if (uname(&system) != 0)
        return false;
    const char *machine = system.machine;
    return strcmp(emulation, strcmp(machine, "aarch64") == 0  ? "aarch64linux"
                             : strcmp(machine, "x86_64") == 0 ? "elf_x86_64"
                                                              : "") == 0;
}

static const char *prefix_of(const char *emulation)
{
    if (emulation && is_native(emulation))
        return NULL;
    for (size_t i = 0; emulation && i < sizeof targets / sizeof *targets; i++) {
        if (strcmp(targets[i].emulation, emulation) == 0)
            return targets[i].prefix;
    }
    return NULL;
}

static bool is_usable(const struct search *search, const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           access(path, X_OK) == 0 &&
           (status.st_dev != search->self.st_dev ||
            status.st_ino != search->self.st_ino);
}

/* In a list of folders with colons between them, or NULL. */
static const char *find_in(const struct search *search, const char *folders,
                           const char *prefix, const char *name)
{
    while (folders && *folders) {
        size_t size = strcspn(folders, ":");
        const char *slash = size > 0 && folders[size - 1] == '/' ? "" : "/";
        const char *path =
            arena_format(search->session, "%.*s%s%s%s", (int)size, folders,
                         size > 0 ? slash : "", prefix, name);
        if (is_usable(search, path))
            return path;
        folders += size + (folders[size] == ':');
    }
    return NULL;
}

/* Where the process that called us has its program: Clang's folder of tools. */
static const char *find_beside_parent(const struct search *search, const char *name)
{
    char path[4096];
    const char *link =
        arena_format(search->session, "/proc/%ld/exe", (long)getppid());
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0)
        return NULL;
    path[size] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    return find_in(search, path, "", name);
}

static const char *find(const struct search *search, const char *name,
                        const char *emulation)
{
    const char *path = getenv("PATH"), *prefix = prefix_of(emulation);
    const char *found = find_in(search, getenv("COMPILER_PATH"), "", name);
    if (!found && strcmp(name, "ld") != 0)
        found = find_beside_parent(search, name);
    if (!found && prefix)
        found = find_in(search, path, prefix, name);
    return found ? found : find_in(search, path, "", name);
}

bool real_find(struct arena *session, const char *argv0, const char *emulation,
               const char **out, struct error *err)
{
    struct search search = {.session = session};
    (void)stat("/proc/self/exe", &search.self);
    const char *wanted = getenv("MO_LINK_LD"), *name = path_base(argv0);
    if (wanted && *wanted) {
        bool is_path = strchr(wanted, '/') != NULL;
        *out = is_path ? wanted : find(&search, wanted, emulation);
        if (*out && is_usable(&search, *out))
            return true;
        return fail(err, NULL, "MO_LINK_LD: there is no linker '%s'", wanted);
    }
    *out = find(&search, name, emulation);
    if (*out)
        return true;
    return fail(err, NULL,
                "there is no linker '%s' besides this one (MO_LINK_LD=PATH names it)",
                name);
}

int real_exec(const char *path, char **argv)
{
    enum { DEEPEST = 8 };
    const char *depth = getenv("MO_LINK_DEPTH");
    int number = depth ? atoi(depth) : 0;
    char text[16];
    if (number >= DEEPEST) {
        fprintf(stderr, "mo-link: error: %s leads back here\n", path);
        return 1;
    }
    snprintf(text, sizeof text, "%d", number + 1);
    setenv("MO_LINK_DEPTH", text, 1);
    argv[0] = strdup(path);
    execv(path, argv);
    fprintf(stderr, "mo-link: error: cannot run %s\n", path);
    return 1;
}
