/* Buffers in every kind of memory, freed and made again. Each exchange is tagged with the offset of its send buffer
 * in the allocation, which the trace must know too. argv[1]: rounds (default 3). */
#define _GNU_SOURCE
#include "common.h"

#include <malloc.h>
#include <sys/mman.h>

/* The send buffer lies `offset` bytes into its allocation, the receive buffer at the start of another. */
static void exchange(char *block, int offset, void *receive)
{
    int *at = (int *)(block + offset);
    at[0] = rank;
    at[1] = offset;
    MPI_Sendrecv(at, 2, MPI_INT, (rank + 1) % size, offset, receive, 2, MPI_INT, (rank + size - 1) % size, offset,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    see(receive, 2);
}

static int global[64];

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    int local[64] = {0};
    void *aligned;

    for (int round = 0; round < rounds; round++) {
        int *receive = malloc(64);
        char *block = malloc(4096);
        exchange(block, 0, receive);
        exchange(block, 64, receive);
        exchange(block, 4088, receive);
        block = realloc(block, 16);
        exchange(block, 8, receive);
        block = realloc(block, 1 << 20);
        exchange(block, 1 << 19, receive);
        free(block);

        block = calloc(16, 16);
        exchange(block, 240, receive);
        free(block);
        if (posix_memalign(&aligned, 256, 1024) != 0)
            return 1;
        exchange(aligned, 256, receive);
        char *other = aligned_alloc(64, 640);
        exchange(other, 64, aligned);
        free(aligned);
        exchange(other, 128, receive);
        free(other);
        other = memalign(128, 512);
        exchange(other, 504, receive);
        free(other);

        block = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        exchange(block, 4096, receive);
        other = malloc(32);
        exchange(other, 16, block);
        munmap(block, 1 << 16);
        free(other);

        MPI_Alloc_mem(256, MPI_INFO_NULL, &block);
        exchange(block, 32, receive);
        MPI_Free_mem(block);

        /* Many of one size, freed in another order than made. */
        char *few[5];
        for (int i = 0; i < 5; i++)
            few[i] = malloc(48);
        for (int i = 0; i < 5; i++)
            exchange(few[i], 8 * i + 4, few[(i + 1) % 5]);
        for (int i = 0; i < 5; i++)
            free(few[(i * 3) % 5]);
        free(receive);

        MPI_Sendrecv(local + 8, 2, MPI_INT, rank, 1, global + 8, 2, MPI_INT, rank, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(global, 2, MPI_INT, rank, 1, local, 2, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    finish("heap");
}
