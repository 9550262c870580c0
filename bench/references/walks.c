/* What call paths cost, kept by function or found by reference: a runtime behind the compiler's thread-sanitizer entry points that
 * does nothing else. Link with a program compiled with -fsanitize=thread -fno-omit-frame-pointer, without that option. WALKS in the
 * environment: none, function (a path is kept by entries and exits), reference (frames are walked at each one). It tells references,
 * and the sum of what it found, so that nothing is left out. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE, FUNCTION, REFERENCE };
static int how;
static __thread uint64_t path, sum, count;
static __thread uint64_t before[1024];
static __thread int depth;

__attribute__((constructor)) static void chosen(void) {
    const char *word = getenv("WALKS");
    how = !word || !strcmp(word, "none") ? NONE : strcmp(word, "reference") ? FUNCTION : REFERENCE;
}

__attribute__((destructor)) static void told(void) {
    fprintf(stderr, "%lu references, %lx\n", (unsigned long)count, (unsigned long)sum);
}

static inline uint64_t blended(uint64_t path, const void *to) {
    return (path << 7 ^ path >> 57 ^ (uintptr_t)to) * 0x9e3779b97f4a7c15u;
}

static inline void refers(const void *address, void **frame) {
    count++;
    if (how == REFERENCE) {
        uint64_t found = 0;
        for (int deep = 0; frame && deep < 64; deep++) {
            found = blended(found, frame[1]);
            void **outer = frame[0];
            if (outer <= frame) break;
            frame = outer;
        }
        sum += found ^ (uintptr_t)address;
    } else {
        sum += path ^ (uintptr_t)address;
    }
}

#define ENTRY(name) \
    void name(void *address) { refers(address, __builtin_frame_address(0)); }
ENTRY(__tsan_read1) ENTRY(__tsan_read2) ENTRY(__tsan_read4) ENTRY(__tsan_read8) ENTRY(__tsan_read16)
ENTRY(__tsan_write1) ENTRY(__tsan_write2) ENTRY(__tsan_write4) ENTRY(__tsan_write8) ENTRY(__tsan_write16)
ENTRY(__tsan_unaligned_read2) ENTRY(__tsan_unaligned_read4) ENTRY(__tsan_unaligned_read8)
ENTRY(__tsan_unaligned_write2) ENTRY(__tsan_unaligned_write4) ENTRY(__tsan_unaligned_write8)

void __tsan_func_entry(void *from) {
    if (how != FUNCTION) return;
    if (depth < 1024) before[depth] = path;
    depth++;
    path = blended(path, from);
}

void __tsan_func_exit(void) {
    if (how != FUNCTION) return;
    depth--;
    if (depth >= 0 && depth < 1024) path = before[depth];
}

void __tsan_init(void) {}
