/* SPDX-License-Identifier: MIT
 *
 * Is the second link the same program, and smaller?
 *
 * The same: it loaded the same files and members, new ones for old ones. That is not
 * idle: helpers in front of the first input may want a symbol earlier than its only
 * user did, and an archive in between may define it, too. Temporary objects of a plugin
 * have other names each time; they are gone by now, which is how we know them.
 *
 * Smaller: by the sections that are loaded, not by the file, which pads to pages and
 * holds symbols.
 */
#include "ld.h"

#include "mo/table.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

struct section_view {
    uint64_t flags, address, size;
    uint32_t type;
};

/* ELF64, little-endian; gABI chapter 4, "Sections". */
static struct section_view section_at(const uint8_t *at)
{
    return (struct section_view){load_le(at + 8, 8), load_le(at + 16, 8),
                                 load_le(at + 32, 8), (uint32_t)load_le(at + 4, 4)};
}

bool judge_sections(struct bytes image, const uint8_t **at, uint64_t *count)
{
    enum { HEADER = 64, ENTRY = 64 };
    if (image.size < HEADER || memcmp(image.at, ELFMAG, SELFMAG) != 0 ||
        image.at[EI_CLASS] != ELFCLASS64 || image.at[EI_DATA] != ELFDATA2LSB)
        return false;
    uint64_t start = load_le(image.at + 40, 8);
    *count = load_le(image.at + 60, 2);
    if (start == 0 || start > image.size || image.size - start < ENTRY ||
        load_le(image.at + 58, 2) != ENTRY)
        return false;
    *at = image.at + start;
    if (*count == 0)
        *count = section_at(*at).size; /* too many for the header's field */
    return *count <= (image.size - start) / ENTRY;
}

const char *judge_measure(struct arena *session, const char *path, struct extent *out)
{
    struct error ignored = {0};
    struct bytes image = {0};
    const uint8_t *at = NULL;
    uint64_t count = 0, first = UINT64_MAX, last = 0;
    *out = (struct extent){0};
    if (!file_read(session, path, &image, &ignored))
        return "the output cannot be read";
    if (image.size > EI_CLASS && memcmp(image.at, ELFMAG, SELFMAG) == 0 &&
        image.at[EI_CLASS] == ELFCLASS32)
        return "the output is a 32-bit program";
    if (!judge_sections(image, &at, &count))
        return "the output is no ELF file with sections";
    for (uint64_t i = 1; i < count; i++) {
        struct section_view section = section_at(at + 64 * i);
        if (!(section.flags & SHF_ALLOC) || section.type == SHT_NOBITS)
            continue;
        out->loaded += section.size;
        if (!(section.flags & SHF_EXECINSTR))
            continue;
        first = section.address < first ? section.address : first;
        last = section.address + section.size > last ? section.address + section.size
                                                     : last;
    }
    out->code_span = last > first ? last - first : 0;
    return NULL;
}

/* --- traces --- */

struct judging {
    struct arena *session;
    const struct choice *choice;
    const char *helpers;
    struct table *new_paths; /* number = index in choice.files */
    struct table *thin;      /* paths of members of thin archives, and the archives' own */
};

/* GNU ld names a member of a thin archive by its own path, but our new archive is not
 * thin: these are not compared. */
static void note_thin(struct judging *judging, const char *path)
{
    struct error ignored = {0};
    struct archive archive;
    struct bytes image = {0};
    if (!file_read(judging->session, path, &image, &ignored) || image.size < 8 ||
        memcmp(image.at, "!<thin>\n", 8) != 0 ||
        !archive_read(judging->session, path, image, &archive, &ignored))
        return;
    (void)table_intern_string(judging->thin, path);
    for (uint32_t i = 0; i < archive.count; i++) {
        const char *name = archive.members[i].name;
        int folder = name[0] == '/' ? 0 : (int)(path_base(path) - path);
        (void)table_intern_string(
            judging->thin, arena_format(judging->session, "%.*s%s", folder, path, name));
    }
}

/* What an entry of either trace is, with the old path for a new one; NULL: nothing that
 * is compared. */
static const char *identity(const struct judging *judging, const struct loaded *loaded)
{
    const char *path = loaded->path;
    uint32_t file = table_find_string(judging->new_paths, path);
    if (loaded->times == 0 || strcmp(path, judging->helpers) == 0)
        return NULL;
    if (file != NO_INDEX)
        path = judging->choice->files[file].path;
    if (table_find_string(judging->thin, path) != NO_INDEX)
        return NULL;
    return arena_format(judging->session, "%s(%s)", path,
                        loaded->member ? loaded->member : "");
}

/* Something of `a` that is not in `b`, or NULL. */
static const char *missing(const struct judging *judging, const struct trace *a,
                           const struct trace *b)
{
    struct table *known = table_new(judging->session);
    for (uint32_t i = 0; i < b->count; i++) {
        const char *name = identity(judging, &b->items[i]);
        if (name)
            (void)table_intern_string(known, name);
    }
    for (uint32_t i = 0; i < a->count; i++) {
        const char *name = identity(judging, &a->items[i]);
        if (name && table_find_string(known, name) == NO_INDEX &&
            access(a->items[i].path, F_OK) == 0)
            return name;
    }
    return NULL;
}

const char *judge_traces(struct arena *session, const struct trace *first,
                         const struct trace *second, const struct choice *choice,
                         const char *helpers)
{
    struct judging judging = {session, choice, helpers, table_new(session),
                              table_new(session)};
    for (uint32_t i = 0; i < choice->file_count; i++) {
        (void)table_intern_string(judging.new_paths, choice->files[i].new_path);
        note_thin(&judging, choice->files[i].path);
    }
    const char *name = missing(&judging, first, second);
    return name ? name : missing(&judging, second, first);
}
