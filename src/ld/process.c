/* SPDX-License-Identifier: MIT
 *
 * Running the real linker, and the folder where all files of one link lie until it is
 * done. What the linker prints goes to files there: a pipe would need two readers, and
 * outputs are short.
 */
#include "ld.h"

#include "mo/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A command line longer than this goes through a response file. Linux allows 128 KiB
 * for one word and a few MiB for all, the environment included. */
enum { LONGEST_LINE = 100000 };

bool scratch_make(struct arena *session, const char **out, struct error *err)
{
    const char *folder = getenv("TMPDIR");
    char *path = arena_format(session, "%s/mo-link-XXXXXX",
                              folder && *folder ? folder : "/tmp");
    if (!mkdtemp(path))
        return fail_errno(err, NULL, "cannot make a folder like %s", path);
    *out = path;
    return true;
}

/* The folder holds files and folders of files. */
static void remove_files(struct arena *session, const char *path, bool deeper)
{
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const char *inner = path_join(session, path, entry->d_name);
        if (unlink(inner) != 0 && deeper)
            remove_files(session, inner, false);
    }
    closedir(folder);
    rmdir(path);
}

void scratch_remove(struct arena *session, const char *path)
{
    remove_files(session, path, true);
}

/* --- response files --- */

static void quote(struct buffer *text, const char *word)
{
    for (; *word; word++) {
        if (strchr(" \t\r\n\\'\"", *word))
            buffer_u8(text, '\\');
        buffer_u8(text, (uint8_t)*word);
    }
    buffer_u8(text, '\n');
}

/* The words themselves, or the program and a file with the others. */
static bool shorten(struct arena *session, const char *scratch,
                    const struct arguments *arguments, struct arguments *out,
                    struct error *err)
{
    size_t size = 0;
    struct buffer text = buffer_new(session);
    *out = (struct arguments){0};
    for (uint32_t i = 0; i < arguments->count; i++) {
        array_push(session, out, arguments->items[i]);
        size += strlen(arguments->items[i]) + 1;
    }
    if (size > LONGEST_LINE) {
        for (uint32_t i = 1; i < arguments->count; i++)
            quote(&text, arguments->items[i]);
        const char *path = path_join(session, scratch, "words");
        if (!file_write(path, buffer_bytes(&text), err))
            return false;
        out->count = 1;
        array_push(session, out, arena_format(session, "@%s", path));
    }
    array_push(session, out, NULL);
    return true;
}

/* --- running --- */

static bool redirect(const char *path, int to)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || dup2(file, to) < 0)
        return false;
    close(file);
    return true;
}

static void become(struct arena *session, const struct arguments *arguments,
                   const char *out, const char *err, bool plain_messages)
{
    if (!redirect(out, STDOUT_FILENO) || !redirect(err, STDERR_FILENO))
        _exit(127);
    if (plain_messages)
        setenv("LC_ALL", "C", 1);
    char **words = arena_new_array(session, char *, (size_t)arguments->count);
    for (uint32_t i = 0; i + 1 < arguments->count; i++)
        words[i] = arena_strdup(session, arguments->items[i]);
    _exit(real_exec(words[0], words));
}

bool process_run(struct arena *session, const char *scratch,
                 const struct arguments *arguments, bool plain_messages,
                 struct outcome *out, struct error *err)
{
    struct arguments words;
    const char *out_path = path_join(session, scratch, "out");
    const char *err_path = path_join(session, scratch, "err");
    if (!shorten(session, scratch, arguments, &words, err))
        return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become(session, &words, out_path, err_path, plain_messages);
    if (child < 0)
        return fail_errno(err, NULL, "cannot start %s", words.items[0]);
    while (waitpid(child, &out->status, 0) < 0) {
        if (errno != EINTR)
            return fail_errno(err, NULL, "cannot wait for %s", words.items[0]);
    }
    return file_read(session, out_path, &out->out, err) &&
           file_read(session, err_path, &out->err, err);
}
