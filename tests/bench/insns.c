/* SPDX-License-Identifier: MIT
 *
 * A plugin for QEMU 7.2's user mode that counts instructions, all of them and by address,
 * and prints both when the program ends:
 *
 *     total COUNT
 *     ADDRESS COUNT      (hexadecimal; a word of code)
 *
 * Debian has no header for it, so what is needed of qemu-plugin.h is declared here.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef struct qemu_info qemu_info_t;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

typedef void (*tb_trans_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*udata_cb)(qemu_plugin_id_t id, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_trans_cb cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, udata_cb cb, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
                                                 size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
                                                enum qemu_plugin_op op, void *at,
                                                uint64_t by);
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                        char **argv);

int qemu_plugin_version = 1;

enum { SLOTS = 1 << 20, SHIFT = 2 };
static struct slot {
    uint64_t word, count; /* word: address >> SHIFT, 0: free */
} slots[SLOTS];

static struct slot *slot_of(uint64_t word)
{
    uint64_t at = word * 0x9e3779b97f4a7c15u >> 44;
    while (slots[at].word != word && slots[at].word != 0)
        at = (at + 1) % SLOTS;
    slots[at].word = word;
    return &slots[at];
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        struct slot *slot = slot_of(qemu_plugin_insn_vaddr(insn) >> SHIFT);
        qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
                                                   &slot->count, 1);
    }
}

static void finish(qemu_plugin_id_t id, void *data)
{
    (void)id;
    const char *path = data;
    FILE *out = fopen(path, "w");
    uint64_t total = 0;
    if (!out)
        return;
    for (int i = 0; i < SLOTS; i++)
        total += slots[i].count;
    fprintf(out, "total %" PRIu64 "\n", total);
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].count)
            fprintf(out, "%" PRIx64 " %" PRIu64 "\n", slots[i].word << SHIFT,
                    slots[i].count);
    }
    fclose(out);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                        char **argv)
{
    static char path[4096] = "insns.txt";
    (void)info;
    if (argc > 0)
        snprintf(path, sizeof path, "%s", argv[0] + (argv[0][0] == 'o' ? 4 : 0));
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finish, path);
    return 0;
}
