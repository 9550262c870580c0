/* What the test programs share: a running sum of everything received, told once by rank 0 at the end, so that a
 * traced run can be held against an untraced one. */
#ifndef COMMON_H
#define COMMON_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A frame of its own on the stack, whatever the compiler thinks. Such a function has something to do after its last
 * call: otherwise that call would be a jump, and the frame gone. */
#define OWN_FRAME __attribute__((noinline, noclone))

static int rank, size;
static long checksum;

static inline void start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Position matters: swapped values change the sum. */
static inline void see(const int *values, int n)
{
    for (int i = 0; i < n; i++)
        checksum = (checksum * 31 + values[i]) % 1000003;
}

/* A number below `most` that looks random and depends on nothing but its arguments: every rank can work out what
 * another one draws, and every C library gives the same. */
static inline int drawn(int most, int a, int b, int c)
{
    unsigned x = 2463534242u;
    int words[3] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        x = (x ^ (unsigned)words[i]) * 2654435761u;
        x ^= x >> 15;
        x = (x + 374761393u) * 2246822519u;
        x ^= x >> 13;
    }
    return (int)(x % (unsigned)most);
}

static inline void finish(const char *name)
{
    long total = 0;
    MPI_Reduce(&checksum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d ranks, checksum %ld\n", name, size, total);
    MPI_Finalize();
}

#endif
