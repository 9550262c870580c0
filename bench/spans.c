/* When each call of a program began and ended, plainly: a library to preload, for `scripts/bench spans`.
 * Every rank keeps its calls in memory and writes them to $SPANS.RANK in MPI_Finalize, 24 bytes each: the function (its place in
 * the list below), where it was called from (the lower half of the return address), start and end in nanoseconds.
 * Only the functions of the programs it is used on are here, and one thread a rank. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct span {
    uint32_t function, caller;
    int64_t start, end;
};

static struct span *spans;
static size_t kept, room;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Room is made before a call begins, so that it is nobody's time. */
static void make_room(void)
{
    if (kept == room) {
        room = room ? 2 * room : 1 << 16;
        spans = realloc(spans, room * sizeof *spans);
        if (!spans)
            abort();
    }
}

#define WRAP(number, name, parameters, arguments)                                                                          \
    int MPI_##name parameters                                                                                              \
    {                                                                                                                      \
        make_room();                                                                                                       \
        int64_t start = now();                                                                                             \
        int result = PMPI_##name arguments;                                                                                \
        spans[kept++] = (struct span){number, (uint32_t)(uintptr_t)__builtin_return_address(0), start, now()};             \
        return result;                                                                                                     \
    }

WRAP(0, Init, (int *argc, char ***argv), (argc, argv))
WRAP(1, Comm_rank, (MPI_Comm c, int *r), (c, r))
WRAP(2, Comm_size, (MPI_Comm c, int *s), (c, s))
WRAP(3, Send, (const void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c), (b, n, t, p, g, c))
WRAP(4, Recv, (void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c, MPI_Status *s), (b, n, t, p, g, c, s))
WRAP(5, Isend, (const void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c, MPI_Request *r), (b, n, t, p, g, c, r))
WRAP(6, Irecv, (void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c, MPI_Request *r), (b, n, t, p, g, c, r))
WRAP(7, Rsend, (const void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c), (b, n, t, p, g, c))
WRAP(8, Sendrecv, (const void *b, int n, MPI_Datatype t, int p, int g, void *b2, int n2, MPI_Datatype t2, int p2, int g2,
    MPI_Comm c, MPI_Status *s), (b, n, t, p, g, b2, n2, t2, p2, g2, c, s))
WRAP(9, Wait, (MPI_Request *r, MPI_Status *s), (r, s))
WRAP(10, Waitall, (int n, MPI_Request *r, MPI_Status *s), (n, r, s))
WRAP(11, Waitany, (int n, MPI_Request *r, int *i, MPI_Status *s), (n, r, i, s))
WRAP(12, Waitsome, (int n, MPI_Request *r, int *m, int *i, MPI_Status *s), (n, r, m, i, s))
WRAP(13, Test, (MPI_Request *r, int *f, MPI_Status *s), (r, f, s))
WRAP(14, Testall, (int n, MPI_Request *r, int *f, MPI_Status *s), (n, r, f, s))
WRAP(15, Testany, (int n, MPI_Request *r, int *i, int *f, MPI_Status *s), (n, r, i, f, s))
WRAP(16, Testsome, (int n, MPI_Request *r, int *m, int *i, MPI_Status *s), (n, r, m, i, s))
WRAP(17, Get_count, (const MPI_Status *s, MPI_Datatype t, int *n), (s, t, n))
WRAP(18, Barrier, (MPI_Comm c), (c))
WRAP(19, Bcast, (void *b, int n, MPI_Datatype t, int p, MPI_Comm c), (b, n, t, p, c))
WRAP(20, Reduce, (const void *b, void *d, int n, MPI_Datatype t, MPI_Op o, int p, MPI_Comm c), (b, d, n, t, o, p, c))
WRAP(21, Allreduce, (const void *b, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (b, d, n, t, o, c))
WRAP(22, Scan, (const void *b, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (b, d, n, t, o, c))
WRAP(23, Allgather, (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c),
    (b, n, t, d, m, u, c))
WRAP(24, Gather, (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, int p, MPI_Comm c),
    (b, n, t, d, m, u, p, c))
WRAP(25, Iprobe, (int p, int g, MPI_Comm c, int *f, MPI_Status *s), (p, g, c, f, s))
WRAP(26, Probe, (int p, int g, MPI_Comm c, MPI_Status *s), (p, g, c, s))
WRAP(27, Alltoall, (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c),
    (b, n, t, d, m, u, c))

int MPI_Finalize(void)
{
    int rank;
    char name[4096];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "%s.%d", getenv("SPANS") ? getenv("SPANS") : "spans", rank);
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(spans, sizeof *spans, kept, file) != kept || fclose(file))
        perror(name);
    return PMPI_Finalize();
}
