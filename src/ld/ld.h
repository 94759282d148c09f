/* SPDX-License-Identifier: MIT
 *
 * mo-link as a linker: what the parts of this room share, in the order in which a link
 * meets them. main.c is the table of contents.
 *
 *   command  the words of a linker's command line, each with its role
 *   real     the linker that the driver would have called without us
 *   process  running it
 *   signals  what interrupts us
 *   trace    what it says of a link: the files and members that it loaded, the sections
 *            that it dropped
 *   choose   which of those are inputs that we may replace
 *   script   libraries that are linker scripts, and name such inputs
 *   places   what linker scripts say of where code comes to lie
 *   outline  new files for them
 *   replace  the command line with the new files in it
 *   judge    whether the new link is the same program, and smaller
 *   deliver  what both links have said, in the names that the user knows
 */
#ifndef MO_LD_H
#define MO_LD_H

#include "mo/inputs.h"
#include "mo/table.h"

/* --- command.c, command_options.c --- */

enum word_role {
    WORD_OPTION,
    WORD_VALUE,        /* of the option before it */
    WORD_FILE,         /* an input */
    WORD_LIBRARY,      /* "-lfoo", "--library=foo" */
    WORD_LIBRARY_NAME, /* "foo" behind "-l" */
};

/* What an option, with its value, means to us. */
enum word_meaning {
    MEANS_NOTHING,
    MEANS_OUTPUT,
    MEANS_LIBRARY,
    MEANS_PRINT, /* writes to standard output */
    MEANS_PRINT_MAP,
    MEANS_PRINT_GC,
    MEANS_MAP,
    MEANS_SCRIPT,
    MEANS_SIDE, /* writes a file about the link itself: once is enough */
    MEANS_RELOCATABLE,
    MEANS_GC,
    MEANS_NO_GC,
    MEANS_STRIP,
    MEANS_EMULATION,
    MEANS_INFORM, /* version, help: no link, unless there are inputs */
    MEANS_LAZY,   /* --start-lib */
    MEANS_EAGER,  /* --end-lib */
    MEANS_WRAP,   /* a name means something else, but not in every file */
    MEANS_STRANGE, /* nothing that we could follow */
};

struct word {
    const char *text;
    const char *library; /* WORD_LIBRARY, WORD_LIBRARY_NAME: "foo" or ":libfoo.a" */
    enum word_role role;
    enum word_meaning meaning;
};

struct command {
    const struct word *words;
    uint32_t count;
    uint32_t file_count;   /* inputs, libraries among them */
    const char *output;    /* "a.out" unless the command line says otherwise */
    const char *map;       /* -Map=FILE, or NULL */
    const char *emulation; /* "elf_x86_64", or NULL */
    struct text_list scripts;
    struct text_list wrap; /* names */
    bool relocatable, gc_sections, strips_debug, prints, prints_map, prints_gc;
    const char *strange; /* an option that we cannot follow, or NULL */
};

/* Understands the words of a command line. What is not known is an option without a
 * value: the word behind it is an input only if the linker says that it loaded it. */
struct command command_read(struct arena *session, const char *const *words,
                            uint32_t count);

/* A linker script names input files in a way that new paths would not match: the word,
 * or NULL. */
const char *script_names_files(struct arena *session, struct bytes text);

/* What is known of an option. `value` gets what stands glued to it, or NULL. */
struct known_option {
    enum word_meaning meaning;
    bool takes_value; /* glued, or in the next word */
};
struct known_option option_known(const char *word, const char **value);

/* --- real.c --- */

/* The linker whose place we have taken, as a path. Fails when there is none but us. */
MO_MUST_CHECK bool real_find(struct arena *session, const char *argv0,
                             const char *emulation, const char **out,
                             struct error *err);
/* Replaces this process by the real linker; returns only when that fails. */
int real_exec(const char *path, char **argv);

/* --- process.c --- */

/* What is to be run: a list that ends in NULL, made by arguments_end(). */
struct arguments {
    const char **items;
    uint32_t count, capacity;
};

struct outcome {
    int status; /* as waitpid() has it */
    struct bytes out, err;
};

/* A folder for the files of one link; scratch_remove() is given the same path. */
MO_MUST_CHECK bool scratch_make(struct arena *session, const char **out,
                                struct error *err);
void scratch_remove(struct arena *session, const char *path);

/* Runs a program and keeps what it prints. Long command lines go through a response
 * file in the scratch folder. */
MO_MUST_CHECK bool process_run(struct arena *session, const char *scratch,
                               const struct arguments *arguments, bool plain_messages,
                               struct outcome *out, struct error *err);

/* --- signals.c --- */

void signals_catch(void);
/* In a child: interruptions end it. */
void signals_forget(void);
/* The number of the signal that interrupted us, or 0. */
int signals_caught(void);
/* This signal is the user's wish, no crash. */
bool signals_interrupt(int number);
/* Ends this process by that signal; returns a status if it cannot. */
int signals_end(int number);

/* --- trace.c --- */

/* A file or archive member that the linker has loaded. */
struct loaded {
    const char *path;
    const char *member;     /* NULL: the file itself */
    uint32_t times;         /* how often the linker says so */
    struct text_list named; /* its sections that were dropped, or kept (trace.kept) */
};

struct trace {
    struct loaded *items; /* in the order in which they were loaded */
    uint32_t count;
    bool kept; /* loaded.named are the sections that were kept */
};

/* From --trace and --print-gc-sections, as GNU ld, gold and lld print them. */
struct trace trace_read(struct arena *session, const struct outcome *outcome);
/* From mold's -Map: its --trace names all members, needed or not. */
struct trace trace_read_map(struct arena *session, struct bytes map);
/* The lines that we have asked for, and that the user has not. */
bool trace_is_gc_line(struct bytes line);
/* Cuts off a line, without its end. False when there is none. */
bool line_next(struct bytes *text, struct bytes *line);

/* --- choose.c --- */

/* An input file that we may replace. */
struct chosen {
    const char *path;     /* as the linker spells it */
    const char *new_path; /* in the scratch folder; nothing may come to lie there */
    struct bytes script;  /* not empty: a library that only names others, its text */
};

struct choice {
    const struct chosen *files;
    uint32_t file_count;
    const uint32_t *file_of; /* by word of the command: index in files, or NO_INDEX */
};

struct choice choose_inputs(struct arena *session, const struct command *command,
                            const struct trace *trace, const char *scratch);

/* --- script.c --- */

struct script {
    const char *path;
    struct bytes text;
    struct text_list archives; /* that it names, as far as they were loaded */
};

/* `loaded` has the paths of the trace. False: the library is no such script. */
bool script_find(struct arena *session, const struct command *command,
                 const struct table *loaded, const char *library, struct script *out);

/* A script that -T or INCLUDE names, where the linker looks for it. */
bool script_open(struct arena *session, const struct command *command,
                 const char *name, struct bytes *out);

/* An input that is a script with SECTIONS in it. */
bool script_is(struct arena *session, const char *path, struct bytes *out);

/* The script with new files for those that are written (by index in choice.files).
 * False: it names none of them. */
bool script_rewrite(struct arena *session, const struct choice *choice,
                    const bool *written, struct bytes text, struct bytes *out);

/* --- places_read.c, places.c --- */

/* *FILE(SECTION) in a linker script. */
struct place_pattern {
    const char *file, *section;
    struct text_list excluded[2]; /* EXCLUDE_FILE before the file, before the section */
    struct text_list doubted;     /* excluded perhaps: linkers differ */
    bool doubtful;                /* matches perhaps: depends on what we do not look at */
    uint32_t output;              /* number of the output section */
};

/* What the scripts of a link say, in their order: the first pattern that matches an
 * input section decides where it comes to lie. */
struct places {
    struct place_pattern *items;
    uint32_t count, capacity;
    uint32_t outputs;
};

#define PLACE_ELSEWHERE 0u
#define PLACE_UNKNOWN   UINT32_MAX

/* Adds a script's. NULL, or the word that is not understood. */
const char *places_read(struct arena *session, const struct command *command,
                        struct bytes text, struct places *places);

/* The output section of an input section: its number, PLACE_ELSEWHERE when the scripts
 * do not mention it, PLACE_UNKNOWN when it is not certain. `member` may be NULL. */
uint32_t places_find(struct arena *session, const struct places *places,
                     const char *path, const char *member, const char *section);

/* --- outline.c, outline_read.c, outline_write.c --- */

enum outline_result {
    OUTLINE_DONE, /* new files lie in the scratch folder */
    OUTLINE_FAILED,
    OUTLINE_NOTHING, /* nothing to gain */
};

struct outline_job {
    const struct options *options;
    const struct choice *choice;
    const struct trace *trace;
    const struct places *places;
    const char *scratch, *output;
};

/* A loaded object that is outlined. */
struct unit_place {
    uint32_t file;   /* index in choice.files */
    uint32_t member; /* index in its archive, or NO_INDEX */
};

struct unit_list {
    const struct object **objects; /* in the order in which they were loaded */
    struct unused *unused;         /* the same numbering */
    struct unit_place *places;     /* the same */
    const struct archive *archives; /* by file; those without members are none */
    uint32_t count;
    struct text_list intermediate; /* left alone: code for link-time optimisation */
};

/* Reads what was loaded. What cannot be read is left alone, with a line if verbose. */
bool outline_read(struct arena *session, const struct outline_job *job,
                  struct unit_list *out, struct error *err);
/* Writes the new files. `objects` has the numbering of `units`, and the helpers behind. */
bool outline_write(struct arena *session, const struct outline_job *job,
                   const struct unit_list *units, const struct objects *objects,
                   struct error *err);

/* Works in a process of its own: whatever happens there, the link goes on. */
enum outline_result outline_apart(struct arena *session, const struct outline_job *job);

/* --- replace.c --- */

/* The command line that makes the first link: the user's, and the question what it
 * loads. `map` is where mold shall write its map, or NULL. */
struct arguments arguments_first(struct arena *session, const char *real,
                                 const struct command *command, const char *map);
/* The same link with the new files. `helpers` and `output` are paths. */
struct arguments arguments_second(struct arena *session, const char *real,
                                  const struct command *command,
                                  const struct choice *choice, const char *helpers,
                                  const char *output, const char *map);

/* --- judge.c --- */

struct extent {
    uint64_t loaded; /* bytes of allocated sections with contents */
    uint64_t code_span; /* from the first byte of code to the last */
};

/* The section headers of an ELF64 image, 64 bytes each. False: there are none. */
bool judge_sections(struct bytes image, const uint8_t **at, uint64_t *count);

/* What a linked file brings into memory: NULL, or why that cannot be said. */
const char *judge_measure(struct arena *session, const char *path, struct extent *out);

/* Both links loaded the same: NULL, or the name of something that only one has. */
const char *judge_traces(struct arena *session, const struct trace *first,
                         const struct trace *second, const struct choice *choice,
                         const char *helpers);

/* --- deliver.c --- */

/* The second link has been taken. */
struct delivery {
    struct arena *session;
    const struct command *command;
    const struct choice *choice;
    const char *scratch, *output; /* where the second link wrote */
    const char *mold_map;         /* or NULL */
};

/* Warnings of the first link, without the lines that answer us. */
void deliver_messages(const struct command *command, struct bytes text);
/* What the user's own options print; the trace stands among it. */
void deliver_output(const struct delivery *delivery, struct bytes text);
/* -Map=FILE, with the names that the user knows. */
void deliver_map(const struct delivery *delivery);
/* Where a report waits until the link has succeeded. */
const char *report_in_scratch(struct arena *session, const char *scratch,
                              enum report_format format);

/* In a report's path, %o is the link's output. */
void deliver_reports(struct arena *session, const struct options *options,
                     const char *output, const char *scratch);

#endif
