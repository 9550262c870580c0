/* Every way to allocate, from several threads at once, with every byte checked. Prints a sum that depends on all. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 4, SLOTS = 64, STEPS = 20000 };

static void fail(const char *what) {
    printf("failed: %s\n", what);
    exit(1);
}

struct piece {
    unsigned char *memory;
    size_t size;
    int mapped;
};

static void *allocate(unsigned kind, size_t size) {
    void *memory = NULL;
    switch (kind % 8) {
    case 0: return malloc(size);
    case 1: memory = calloc(size, 1); break;
    case 2: return posix_memalign(&memory, 64, size) == 0 ? memory : NULL;
    case 3: return aligned_alloc(32, (size + 31) / 32 * 32);
    case 4: return memalign(256, size);
    case 5: return valloc(size);
    case 6: return reallocarray(NULL, size, 1);
    default: return realloc(NULL, size);
    }
    for (size_t i = 0; memory && i < size; i++)
        if (((unsigned char *)memory)[i]) fail("calloc gave used memory");
    return memory;
}

static uint64_t check_and_drop(struct piece *piece) {
    uint64_t sum = 0;
    for (size_t i = 0; i < piece->size; i++) sum += piece->memory[i];
    if (sum != piece->size * (uint64_t)piece->memory[0]) fail("memory was overwritten");
    if (piece->mapped) munmap(piece->memory, piece->size);
    else free(piece->memory);
    piece->memory = NULL;
    return sum;
}

static void *work(void *argument) {
    uint64_t seed = (uintptr_t)argument * 2654435761u + 1, sum = 0;
    struct piece pieces[SLOTS] = {{0}};
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned random = seed >> 33;
        struct piece *piece = &pieces[random % SLOTS];
        size_t size = 1 + (random >> 6) % ((random & 1023) ? 3000 : 400000);
        if (!piece->memory) {
            piece->mapped = random % 50 == 0;
            piece->memory = piece->mapped ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                          : allocate(random >> 20, size);
            if (!piece->memory || piece->memory == MAP_FAILED) fail("no memory");
        } else if (!piece->mapped && random % 3 == 0) {
            size_t kept = size < piece->size ? size : piece->size;
            unsigned char byte = piece->memory[0];
            piece->memory = realloc(piece->memory, size);
            for (size_t i = 0; i < kept; i++)
                if (piece->memory[i] != byte) fail("realloc lost contents");
        } else {
            sum += check_and_drop(piece);
            continue;
        }
        piece->size = size;
        memset(piece->memory, random >> 8, size);
        if (!piece->mapped && malloc_usable_size(piece->memory) < size) fail("too little memory");
    }
    for (int i = 0; i < SLOTS; i++)
        if (pieces[i].memory) sum += check_and_drop(&pieces[i]);
    return (void *)(uintptr_t)sum;
}

int main(void) {
    pthread_t threads[THREADS];
    uint64_t sum = 0;
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (uintptr_t)result;
    }
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(map, "moved");
    map = mremap(map, 8192, 1 << 20, MREMAP_MAYMOVE);
    if (map == MAP_FAILED || strcmp(map, "moved") || munmap(map, 1 << 20)) fail("mremap");
    volatile size_t huge = SIZE_MAX / 2;
    errno = 0;
    if (reallocarray(NULL, huge, 4) || errno != ENOMEM) fail("reallocarray overflow");
    errno = 0;
    if (calloc(huge, 4) || errno != ENOMEM) fail("calloc overflow");
    errno = 0;
    if (malloc(huge + 1) || errno != ENOMEM) fail("malloc of everything");
    errno = 5;
    free(malloc(100));
    if (errno != 5) fail("errno was changed");
    free(NULL);
    printf("sum %llu\n", (unsigned long long)sum);
    return 0;
}
