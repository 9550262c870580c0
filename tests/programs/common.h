/* What the test programs share: a running sum of everything received, told once by rank 0 at the end, so that a
 * traced run can be held against an untraced one. */
#ifndef COMMON_H
#define COMMON_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static inline void finish(const char *name)
{
    long total = 0;
    MPI_Reduce(&checksum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d ranks, checksum %ld\n", name, size, total);
    MPI_Finalize();
}

#endif
