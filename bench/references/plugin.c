/* What QEMU costs before anything is recorded: a plugin that counts accesses inline (how=count), or whose callback does nothing
   (how=empty). The declarations are those of version 1 of QEMU's interface that are used here. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*on_translation)(uint64_t, struct qemu_plugin_tb *);
typedef void (*on_memory)(unsigned, uint32_t, uint64_t, void *);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, on_translation);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_memory, int, int, void *);
void qemu_plugin_register_vcpu_mem_inline(struct qemu_plugin_insn *, int, int, void *, uint64_t);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static bool counts;
static uint64_t count;

static void nothing(unsigned processor, uint32_t info, uint64_t address, void *data) {
    (void)processor, (void)info, (void)address, (void)data;
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        if (counts)
            qemu_plugin_register_vcpu_mem_inline(insn, 3, 0, &count, 1);
        else
            qemu_plugin_register_vcpu_mem_cb(insn, nothing, 0, 3, NULL);
    }
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
    (void)info;
    counts = argc > 0 && strcmp(argv[0], "how=count") == 0;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
