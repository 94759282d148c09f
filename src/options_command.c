/* SPDX-License-Identifier: MIT
 *
 * mo-link [OPTIONS] -- COMMAND: every link below the command goes through our linker
 * step. Compiler drivers look for their linker in the folders of COMPILER_PATH first
 * (GCC and Clang alike), and who calls `ld` itself looks in PATH; the options travel in
 * MO_LINK_FLAGS. So nothing has to be preloaded, and nothing in a build to be changed.
 */
#include "options_parts.h"

#include "mo/bytes.h"
#include "mo/inputs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Installed as bin/mo-link and libexec/mo-link/ld; in a build folder side by side. */
static const char *find_folder(struct arena *session)
{
    static const char *const places[] = {"../libexec/mo-link", "libexec/mo-link"};
    char self[4096];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size <= 0)
        return NULL;
    self[size] = '\0';
    int folder = (int)(path_base(self) - self);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *path = arena_format(session, "%.*s%s", folder, self, places[i]);
        if (access(arena_format(session, "%s/ld", path), X_OK) == 0)
            return path;
    }
    return NULL;
}

static void put_first(struct arena *session, const char *variable, const char *folder)
{
    const char *old = getenv(variable);
    bool more = old && *old;
    setenv(variable,
           arena_format(session, "%s%s%s", folder, more ? ":" : "", more ? old : ""), 1);
}

static const char *quoted(struct arena *session, const struct text_list *words)
{
    struct buffer text = buffer_new(session);
    for (uint32_t i = 0; i < words->count; i++) {
        for (const char *at = words->items[i]; *at; at++) {
            if (strchr(" \t\r\n\v\f\\'\"", *at))
                buffer_u8(&text, '\\');
            buffer_u8(&text, (uint8_t)*at);
        }
        buffer_u8(&text, ' ');
    }
    buffer_u8(&text, '\0');
    return (const char *)text.at;
}

bool options_run_command(struct arena *session, const struct options *options,
                         struct error *err)
{
    const char *folder = find_folder(session);
    if (!folder)
        return fail(err, NULL,
                    "cannot find libexec/mo-link/ld beside this program: 'cmake --build' "
                    "without a target makes it, 'cmake --install' puts it there");
    put_first(session, "COMPILER_PATH", folder);
    put_first(session, "PATH", folder);
    setenv("MO_LINK_FLAGS", quoted(session, &options->words), 1);
    execvp(options->command[0], options->command);
    return fail_errno(err, NULL, "cannot run %s", options->command[0]);
}
