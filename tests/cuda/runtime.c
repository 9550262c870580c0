/* Stands in for a GPU's runtime where there is no GPU: its "device memory" is the host's, so that any MPI library can send
 * from it. Built as libcudart.so.12, with -DHIP as libamdhip64.so.6, and with -DDRIVER as a libcuda.so.1 that also answers
 * questions about addresses.
 *
 * Memory comes in pieces of 256 bytes from one mapping for each kind; the first piece that fits is used again. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef HIP
#define NAME(name) hip##name
#else
#define NAME(name) cuda##name
#endif

enum { PIECE = 256, PIECES = 1024, INVALID = 1, OUT_OF_MEMORY = 2 };
enum kind { DEVICE, MANAGED, HOST, KINDS };

static struct arena {
    char *base;
    /* Of an allocation's first piece: how many it has. Of the others: 1. */
    int used[PIECES];
    size_t size[PIECES];
    int device[PIECES];
    unsigned long long id[PIECES];
} arenas[KINDS];

static __thread int current;
static unsigned long long made;

static int devices(void) {
    const char *count = getenv("STANDIN_DEVICES");
    return count ? atoi(count) : 1;
}

int NAME(GetDeviceCount)(int *count) { return *count = devices(), 0; }
int NAME(GetDevice)(int *device) { return *device = current, 0; }
int NAME(SetDevice)(int device) {
    if (device < 0 || device >= devices()) return INVALID;
    return current = device, 0;
}

static int allocate(enum kind kind, void **place, size_t size) {
    struct arena *arena = &arenas[kind];
    int need = (int)((size + PIECE - 1) / PIECE), free = 0;
    *place = NULL;
    if (size == 0) return 0;
    if (size > (size_t)PIECE * PIECES) return OUT_OF_MEMORY;
    if (!arena->base) {
        arena->base = mmap(NULL, (size_t)PIECE * PIECES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (arena->base == MAP_FAILED) return OUT_OF_MEMORY;
    }
    for (int i = 0; i < PIECES; i++) {
        free = arena->used[i] ? 0 : free + 1;
        if (free < need) continue;
        int first = i + 1 - need;
        for (int k = first; k <= i; k++) arena->used[k] = 1;
        arena->used[first] = need;
        arena->size[first] = size;
        arena->device[first] = current;
        arena->id[first] = ++made;
        *place = arena->base + (size_t)first * PIECE;
        return 0;
    }
    return OUT_OF_MEMORY;
}

/* The arena that holds `memory`, and the piece it lies in. */
static struct arena *find(const void *memory, int *piece) {
    for (int kind = 0; kind < KINDS; kind++) {
        uintptr_t offset = (uintptr_t)memory - (uintptr_t)arenas[kind].base;
        if (!arenas[kind].base || offset >= (uintptr_t)PIECE * PIECES) continue;
        *piece = (int)(offset / PIECE);
        return &arenas[kind];
    }
    return NULL;
}

static int release(void *memory) {
    int first;
    if (!memory) return 0;
    struct arena *arena = find(memory, &first);
    if (!arena || !arena->size[first]) return INVALID;
    for (int k = first + arena->used[first] - 1; k >= first; k--) arena->used[k] = 0;
    arena->size[first] = 0;
    return 0;
}

int NAME(Malloc)(void **place, size_t size) { return allocate(DEVICE, place, size); }
int NAME(MallocAsync)(void **place, size_t size, void *stream) { return (void)stream, allocate(DEVICE, place, size); }
int NAME(MallocManaged)(void **place, size_t size, unsigned flags) { return (void)flags, allocate(MANAGED, place, size); }
int NAME(MallocHost)(void **place, size_t size) { return allocate(HOST, place, size); }
int NAME(MallocPitch)(void **place, size_t *pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    return allocate(DEVICE, place, *pitch * height);
}
int NAME(Free)(void *memory) { return release(memory); }
int NAME(FreeHost)(void *memory) { return release(memory); }
int NAME(FreeAsync)(void *memory, void *stream) { return (void)stream, release(memory); }
#ifdef HIP
int hipHostMalloc(void **place, size_t size, unsigned flags) { return (void)flags, allocate(HOST, place, size); }
int hipHostFree(void *memory) { return release(memory); }
#else
int cudaHostAlloc(void **place, size_t size, unsigned flags) { return (void)flags, allocate(HOST, place, size); }
#endif

#ifdef DRIVER
/* As CUDA's does: an address it does not know is no error, and has no memory type. */
int cuPointerGetAttributes(unsigned count, const unsigned *attributes, void **data, uintptr_t pointer) {
    int piece = 0;
    struct arena *arena = find((void *)pointer, &piece);
    while (arena && piece > 0 && !arena->size[piece]) piece--;
    size_t size = arena ? arena->size[piece] : 0;
    uintptr_t start = size ? (uintptr_t)arena->base + (uintptr_t)piece * PIECE : 0;
    if (pointer - start >= size) size = 0;
    for (unsigned i = 0; i < count; i++) {
        switch (attributes[i]) {
        case 2: *(unsigned *)data[i] = !size ? 0 : arena == &arenas[HOST] ? 1 : 2; break;
        case 7: *(unsigned long long *)data[i] = size ? arena->id[piece] : 0; break;
        case 8: *(unsigned *)data[i] = size && arena == &arenas[MANAGED]; break;
        case 9: *(int *)data[i] = size ? arena->device[piece] : -2; break;
        case 11: *(uintptr_t *)data[i] = size ? start : 0; break;
        case 12: *(size_t *)data[i] = size; break;
        default: return INVALID;
        }
    }
    return 0;
}
#endif
