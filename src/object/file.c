/* SPDX-License-Identifier: MIT
 *
 * Files as a whole: in with one read, out whole or not at all.
 *
 * Writing goes to a temporary file in the same directory, which rename(2) puts in place
 * at once: nobody ever sees half a file, and an input may be its own output. Only a
 * path that is there and is no regular file (/dev/null, a pipe) is written to directly:
 * to rename over it would replace it.
 *
 * open(2) with O_EXCL and a name of our own, rather than mkstemp(3): mkstemp makes
 * files of mode 0600, and the only way to learn the umask is to change it.
 */
#include "mo/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, ATTEMPTS = 1000 };

static bool read_all(int file, const struct place *place, struct buffer *buffer,
                     struct error *err)
{
    uint8_t *chunk = arena_alloc(buffer->arena, CHUNK);
    for (;;) {
        ssize_t got = read(file, chunk, CHUNK);
        if (got == 0)
            return true;
        if (got > 0)
            buffer_put(buffer, chunk, (uint64_t)got);
        else if (errno != EINTR)
            return fail_errno(err, place, "cannot read");
    }
}

/* A regular file, whose size is known: no growing, no copying. */
static bool read_sized(int file, const struct place *place, uint8_t *at, uint64_t *size,
                       struct error *err)
{
    uint64_t done = 0;
    while (done < *size) {
        ssize_t got = read(file, at + done, *size - done);
        if (got == 0)
            break;
        if (got > 0)
            done += (uint64_t)got;
        else if (errno != EINTR)
            return fail_errno(err, place, "cannot read");
    }
    *size = done;
    return true;
}

bool file_read(struct arena *arena, const char *path, struct bytes *out,
               struct error *err)
{
    const struct place place = {.file = path};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail_errno(err, &place, "cannot open");
    struct stat status;
    bool ok = true;
    if (fstat(file, &status) != 0) {
        ok = fail_errno(err, &place, "cannot read");
    } else if (S_ISREG(status.st_mode)) {
        uint64_t size = (uint64_t)status.st_size;
        uint8_t *at = arena_alloc(arena, size);
        ok = read_sized(file, &place, at, &size, err);
        *out = (struct bytes){at, size};
    } else {
        struct buffer buffer = buffer_new(arena);
        ok = read_all(file, &place, &buffer, err);
        *out = buffer_bytes(&buffer);
    }
    close(file);
    return ok;
}

static bool write_all(int file, struct bytes bytes)
{
    uint64_t done = 0;
    while (done < bytes.size) {
        ssize_t put = write(file, bytes.at + done, bytes.size - done);
        if (put > 0)
            done += (uint64_t)put;
        else if (errno != EINTR)
            return false;
    }
    return true;
}

static bool write_direct(const char *path, struct bytes bytes, struct error *err)
{
    const struct place place = {.file = path};
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return fail_errno(err, &place, "cannot open for writing");
    bool written = write_all(file, bytes);
    if (close(file) != 0 || !written)
        return fail_errno(err, &place, "cannot write");
    return true;
}

/* Opens a new file beside `path`; its name lives in the arena. */
static int open_temporary(struct arena *stage, const char *path, const char **name)
{
    int file = -1;
    for (unsigned attempt = 0; attempt < ATTEMPTS && file < 0; attempt++) {
        *name = arena_format(stage, "%s.tmp-%ld-%u", path, (long)getpid(), attempt);
        file = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

static bool write_renamed(struct arena *stage, const char *path, struct bytes bytes,
                          struct error *err)
{
    const struct place place = {.file = path};
    const char *name = NULL;
    int file = open_temporary(stage, path, &name);
    if (file < 0 && errno == ENOENT)
        return fail(err, &place, "there is no folder to write it into");
    if (file < 0)
        return fail_errno(err, &place, "cannot create a file beside it");
    bool written = write_all(file, bytes);
    if (close(file) != 0 || !written || rename(name, path) != 0) {
        (void)fail_errno(err, &place, "cannot write");
        unlink(name);
        return false;
    }
    return true;
}

bool file_write(const char *path, struct bytes bytes, struct error *err)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return write_direct(path, bytes, err);
    struct arena *stage = arena_new();
    bool ok = write_renamed(stage, path, bytes, err);
    arena_free(stage);
    return ok;
}
