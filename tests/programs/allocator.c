/* A small allocator that trusts nobody: memory that it has not given out, freed or resized through it, ends the process.
 * Built as a library to be preloaded, linked or opened, or into the program. With -DBEHIND_JEMALLOC, _TCMALLOC or
 * _MIMALLOC the functions are the program's own and pass everything on to that allocator by its other names. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *take(size_t alignment, size_t size);
static void give(void *memory);
static size_t room(void *memory);

#if defined BEHIND_JEMALLOC
void *mallocx(size_t, int);
void dallocx(void *, int);
size_t sallocx(const void *, int);
static void *take(size_t alignment, size_t size) { return mallocx(size ? size : 1, __builtin_ctzl(alignment)); }
static void give(void *memory) { dallocx(memory, 0); }
static size_t room(void *memory) { return sallocx(memory, 0); }
#elif defined BEHIND_TCMALLOC
void *tc_malloc(size_t);
void *tc_memalign(size_t, size_t);
void tc_free(void *);
size_t tc_malloc_size(void *);
static void *take(size_t alignment, size_t size)
{
    return alignment > 16 ? tc_memalign(alignment, size) : tc_malloc(size);
}
static void give(void *memory) { tc_free(memory); }
static size_t room(void *memory) { return tc_malloc_size(memory); }
#elif defined BEHIND_MIMALLOC
void *mi_malloc_aligned(size_t, size_t);
void mi_free(void *);
size_t mi_usable_size(const void *);
static void *take(size_t alignment, size_t size) { return mi_malloc_aligned(size, alignment); }
static void give(void *memory) { mi_free(memory); }
static size_t room(void *memory) { return mi_usable_size(memory); }
#else
/* Before each piece: whose it is, its class, and the next free one of that class. Classes are powers of two; pieces come
 * from chunks that are never given back. */
struct piece {
    uint64_t magic, class;
    struct piece *next;
    uint64_t unused;
};

static const uint64_t LIVE = 0x726566726169616cu, FREE = 0x66726565;
static struct piece *unused[64];
static char *chunk;
static size_t left;
static int lock;

static void enter(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(&lock, __ATOMIC_RELAXED))
            usleep(1);
}

static void leave(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

static void *pages(size_t size)
{
    void *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? 0 : memory;
}

static struct piece *piece_of(void *memory)
{
    struct piece *piece = (struct piece *)memory - 1;
    if (piece->magic != LIVE) {
        static const char text[] = "allocator: memory that is not mine\n";
        if (write(2, text, sizeof text - 1) < 0)
            _exit(98);
        abort();
    }
    return piece;
}

/* Aligned pieces lie anywhere in a larger one: a copy of its head stands before them, and they are not used again. */
static void *take(size_t alignment, size_t size)
{
    int class = 5;
    size_t want = size + sizeof(struct piece) + (alignment > 32 ? alignment : 0);
    if (want < size)
        return 0;
    while (((size_t)1 << class) < want)
        class++;
    enter();
    struct piece *piece = alignment > 32 ? 0 : unused[class];
    if (piece) {
        unused[class] = piece->next;
    } else {
        size_t whole = (size_t)1 << class;
        if (left < whole) {
            size_t more = whole > 1 << 20 ? whole : 1 << 20;
            chunk = pages(more);
            left = chunk ? more : 0;
        }
        if (!chunk) {
            leave();
            return 0;
        }
        piece = (struct piece *)chunk;
        chunk += whole;
        left -= whole;
    }
    leave();
    if (alignment > 32) {
        uintptr_t place = ((uintptr_t)(piece + 1) + alignment - 1) & ~(alignment - 1);
        piece = (struct piece *)place - 1;
        piece->class = size << 8 | 255;
    } else {
        piece->class = class;
    }
    piece->magic = LIVE;
    return piece + 1;
}

static size_t room(void *memory)
{
    struct piece *piece = piece_of(memory);
    return (piece->class & 255) == 255 ? piece->class >> 8 : ((size_t)1 << piece->class) - sizeof *piece;
}

static void give(void *memory)
{
    struct piece *piece = piece_of(memory);
    piece->magic = FREE;
    if ((piece->class & 255) == 255)
        return;
    enter();
    piece->next = unused[piece->class];
    unused[piece->class] = piece;
    leave();
}
#endif

void *malloc(size_t size)
{
    void *memory = take(16, size);
    if (!memory)
        errno = ENOMEM;
    return memory;
}

void free(void *memory)
{
    if (memory)
        give(memory);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    void *memory = __builtin_mul_overflow(count, size, &bytes) ? 0 : malloc(bytes);
    return memory ? memset(memory, 0, bytes) : 0;
}

void *realloc(void *old, size_t size)
{
    void *memory = malloc(size);
    if (old && memory) {
        size_t kept = room(old);
        memcpy(memory, old, kept < size ? kept : size);
        free(old);
    }
    return memory;
}

void *reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? 0 : realloc(old, bytes);
}

void *memalign(size_t alignment, size_t size) { return take(alignment < 16 ? 16 : alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
void *valloc(size_t size) { return memalign(4096, size); }
void *pvalloc(size_t size) { return memalign(4096, (size + 4095) & ~(size_t)4095); }

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *memory) { return memory ? room(memory) : 0; }
