/* SPDX-License-Identifier: MIT
 *
 * Archives, as System V (GNU) and BSD make them, thin ones too. Each member has a
 * header of 60 characters:
 *
 *     name 16, date 12, owner 6, group 6, mode 8 (octal), size 10, "`\n"
 *
 * and starts at an even offset. Names longer than the field lie in the member "//" (the
 * field then says "/offset", GNU) or before the contents ("#1/length", BSD). "/",
 * "/SYM64/" and "__.SYMDEF" are symbol indices: skipped when reading, made anew when
 * writing.
 *
 * A thin archive holds the headers only; its members are files named relative to it. We
 * write whole archives, never thin ones: a thin one would name the files that we have
 * replaced.
 */
#include "archive.h"

#include "mo/array.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

enum { LONGEST_NAME = 4096 };

struct reading {
    struct arena *arena;
    const char *path;
    struct bytes image;
    struct bytes long_names; /* the member "//" */
    bool thin;
    array_of(struct archive_member) members;
    struct error *err;
};

struct header {
    char name[ARCHIVE_NAME + 1];
    uint64_t size;
    uint64_t start; /* offset of the contents in the image */
};

#define archive_fail(reading, at, ...)                                                 \
    fail((reading)->err,                                                               \
         &(struct place){                                                              \
             .file = (reading)->path, .section = "archive", .offset = (at)},           \
         __VA_ARGS__)

bool archive_recognise(struct bytes image)
{
    return image.size >= ARCHIVE_MAGIC &&
           (memcmp(image.at, "!<arch>\n", ARCHIVE_MAGIC) == 0 ||
            memcmp(image.at, "!<thin>\n", ARCHIVE_MAGIC) == 0);
}

/* A decimal number, padded with spaces. False if there is none, or something else. */
static bool parse_number(const char *text, size_t size, uint64_t *out)
{
    size_t i = 0;
    *out = 0;
    for (; i < size && text[i] >= '0' && text[i] <= '9'; i++)
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    bool found = i > 0;
    while (i < size && text[i] == ' ')
        i++;
    return found && i == size;
}

static bool read_header(struct reading *reading, uint64_t at, struct header *out)
{
    struct bytes image = reading->image;
    if (image.size - at < ARCHIVE_HEADER)
        return archive_fail(reading, at, "is truncated: half a member header");
    const char *text = (const char *)image.at + at;
    if (memcmp(text + ARCHIVE_HEADER - 2, "`\n", 2) != 0 ||
        !parse_number(text + ARCHIVE_SIZE_AT, 10, &out->size))
        return archive_fail(reading, at, "there is no member header");
    memcpy(out->name, text, ARCHIVE_NAME);
    out->name[ARCHIVE_NAME] = '\0';
    for (size_t end = ARCHIVE_NAME; end > 0 && out->name[end - 1] == ' '; end--)
        out->name[end - 1] = '\0';
    out->start = at + ARCHIVE_HEADER;
    return true;
}

/* "/123" of a GNU archive: the name at that offset, up to "/\n". */
static bool long_name(struct reading *reading, const struct header *header,
                      const char **out)
{
    uint64_t at, end;
    struct bytes names = reading->long_names;
    if (strchr(header->name, ':'))
        return archive_fail(
            reading, header->start,
            "members of archives within thin archives are not supported");
    if (!parse_number(header->name + 1, strlen(header->name + 1), &at) ||
        at >= names.size)
        return archive_fail(reading, header->start, "member name %s leads nowhere",
                            header->name);
    for (end = at; end < names.size && names.at[end] != '\n';)
        end++;
    if (end - at > LONGEST_NAME)
        return archive_fail(reading, header->start, "member name %s is too long",
                            header->name);
    if (end > at && names.at[end - 1] == '/')
        end--;
    *out = arena_format(reading->arena, "%.*s", (int)(end - at), names.at + at);
    return true;
}

/* "#1/12": the name is the first 12 bytes of the contents. */
static bool bsd_name(struct reading *reading, struct header *header, const char **out)
{
    uint64_t length;
    if (!parse_number(header->name + 3, strlen(header->name + 3), &length) ||
        length > LONGEST_NAME || length > header->size ||
        reading->image.size - header->start < length)
        return archive_fail(reading, header->start, "member name %s leads nowhere",
                            header->name);
    *out = arena_format(reading->arena, "%.*s", (int)length,
                        (const char *)reading->image.at + header->start);
    header->start += length;
    header->size -= length;
    return true;
}

static bool member_name(struct reading *reading, struct header *header,
                        const char **out)
{
    if (strncmp(header->name, "#1/", 3) == 0)
        return bsd_name(reading, header, out);
    if (header->name[0] == '/' && header->name[1] >= '0' && header->name[1] <= '9')
        return long_name(reading, header, out);
    size_t length = strlen(header->name);
    if (length > 0 && header->name[length - 1] == '/')
        length--;
    *out = arena_format(reading->arena, "%.*s", (int)length, header->name);
    return true;
}

/* Bitcode counts: whoever reads it as an object is told what it is. */
static bool looks_like_object(struct bytes image)
{
    return image.size >= 4 && (memcmp(image.at, ELFMAG, SELFMAG) == 0 ||
                               memcmp(image.at, "BC\xC0\xDE", 4) == 0 ||
                               memcmp(image.at, "\xDE\xC0\x17\x0B", 4) == 0);
}

/* By the name field, or by the long name of a BSD archive; GNU ends the names of
 * members in a slash, so no member is mistaken for an index. */
static bool is_index(const char *name)
{
    static const char *const names[] = {"/",
                                        "/SYM64/",
                                        "__.SYMDEF",
                                        "__.SYMDEF SORTED",
                                        "__.SYMDEF_64",
                                        "__.SYMDEF_64 SORTED"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static bool is_bsd_name(const struct header *header)
{
    return strncmp(header->name, "#1/", 3) == 0;
}

static bool read_thin(struct reading *reading, const char *name, struct bytes *out)
{
    const char *slash = strrchr(reading->path, '/');
    int directory = slash ? (int)(slash - reading->path) + 1 : 0;
    const char *path = name[0] == '/' ? name
                                      : arena_format(reading->arena, "%.*s%s",
                                                     directory, reading->path, name);
    return file_read(reading->arena, path, out, reading->err);
}

static bool read_member(struct reading *reading, struct header *header)
{
    struct archive_member member = {0};
    if (!member_name(reading, header, &member.name))
        return false;
    if (is_bsd_name(header) && is_index(member.name))
        return true;
    if (!reading->thin)
        member.image = (struct bytes){reading->image.at + header->start, header->size};
    else if (!read_thin(reading, member.name, &member.image))
        return false;
    member.is_object = looks_like_object(member.image);
    array_push(reading->arena, &reading->members, member);
    return true;
}

/* Reads what starts at *at, and moves on to the next header. */
static bool read_entry(struct reading *reading, uint64_t *at)
{
    struct header header;
    if (!read_header(reading, *at, &header))
        return false;
    bool index = is_index(header.name), names = strcmp(header.name, "//") == 0;
    uint64_t size = index || names || !reading->thin ? header.size : 0;
    if (size > reading->image.size - header.start)
        return archive_fail(reading, *at,
                            "is truncated: member %s of %" PRIu64
                            " bytes leaves the file",
                            header.name, size);
    uint64_t end = header.start + size;
    *at = end + (end & 1);
    if (names)
        reading->long_names = (struct bytes){reading->image.at + header.start, size};
    return index || names || read_member(reading, &header);
}

bool archive_read(struct arena *arena, const char *path, struct bytes image,
                  struct archive *out, struct error *err)
{
    struct reading reading = {.arena = arena, .path = path, .image = image, .err = err};
    if (!archive_recognise(image))
        return fail(err, &(struct place){.file = path}, "is not an archive");
    reading.thin = memcmp(image.at, "!<thin>\n", ARCHIVE_MAGIC) == 0;
    for (uint64_t at = ARCHIVE_MAGIC; at < image.size;) {
        if (!read_entry(&reading, &at))
            return false;
    }
    out->name = path;
    out->members = reading.members.items;
    out->count = reading.members.count;
    out->thin = reading.thin;
    return true;
}
