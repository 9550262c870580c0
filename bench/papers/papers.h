/* What the programs of the papers share. Messages have no content: who sends how much to whom is all that matters.
 * crates/scale/src/papers has each of them a second time, for more ranks than a machine has. */
#ifndef PAPERS_H
#define PAPERS_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { ROOM = 1 << 20, MOST_REQUESTS = 4096 };

static int rank, size, steps;
/* What is sent and what is received: ROOM doubles each. */
static double *out, *in;

/* Real programs compute between messages. PAPERS_WORK says how much of that is done: 1 for all, nothing by default. */
static double work;
static double *points, *relaxed;

/* Processor seconds of this process so far. */
static inline double processor(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double started;

static inline void start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    started = processor();
    work = getenv("PAPERS_WORK") ? atof(getenv("PAPERS_WORK")) : 0;
    if (work > 0) {
        points = malloc(ROOM * sizeof *points);
        relaxed = malloc(ROOM * sizeof *relaxed);
        /* Nothing near zero: processors are slow on numbers that small. */
        for (int i = 0; i < ROOM; i++)
            points[i] = relaxed[i] = 1 + i % 7;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    steps = *argc > 1 ? atoi((*argv)[1]) : 10;
    out = calloc(ROOM, sizeof *out);
    in = calloc(ROOM, sizeof *in);
}

/* The program ends in order on a number of ranks that it cannot use. */
static inline void need(int legal, const char *what)
{
    if (legal)
        return;
    if (rank == 0)
        fprintf(stderr, "the number of ranks must be %s, not %d\n", what, size);
    MPI_Finalize();
    exit(2);
}

/* So many floating-point operations on each of so many points of this rank: sweeps of a relaxation, four operations a point. */
static inline void compute(double count, double operations)
{
    double left = work * count * operations / 4;
    int room = count < ROOM ? (int)count : ROOM;
    while (left >= 1) {
        int now = left < room ? (int)left : room;
        for (int i = 1; i + 1 < now; i++)
            relaxed[i] = 0.25 * (points[i - 1] + points[i + 1]) + 0.5 * points[i];
        double *swapped = points;
        points = relaxed;
        relaxed = swapped;
        left -= now;
    }
}

/* PAPERS_CPU makes each rank say what it took after MPI_Init. */
static inline void finish(void)
{
    MPI_Finalize();
    if (getenv("PAPERS_CPU"))
        fprintf(stderr, "after MPI_Init %.6f\n", processor() - started);
    free(points);
    free(relaxed);
    free(in);
    free(out);
}

static inline int is_power_of_two(int number)
{
    return number > 0 && (number & (number - 1)) == 0;
}

/* Part `at` of a line that is cut into `parts`: the first ones are longer where it does not divide. */
static inline int share(int line, int parts, int at)
{
    return line / parts + (at < line % parts);
}

/* A number that looks random and depends on nothing but its arguments. */
static inline uint64_t mixed(uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t x = 0x2545f4914f6cdd1dull;
    uint32_t words[3] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        x = (x ^ words[i]) * 0x9e3779b97f4a7c15ull;
        x ^= x >> 29;
    }
    return x;
}

/* Extents as near to a cube as the factors of the ranks allow, longest first. */
static inline void balanced(int dimensions, int *extent)
{
    int factors[32], n = 0, left = size;
    for (int factor = 2; factor * factor <= left; factor++)
        for (; left % factor == 0; left /= factor)
            factors[n++] = factor;
    if (left > 1)
        factors[n++] = left;
    for (int d = 0; d < dimensions; d++)
        extent[d] = 1;
    while (n > 0) {
        int shortest = 0;
        for (int d = 1; d < dimensions; d++)
            if (extent[d] < extent[shortest])
                shortest = d;
        extent[shortest] *= factors[--n];
    }
    for (int a = 0; a < dimensions; a++)
        for (int b = a + 1; b < dimensions; b++)
            if (extent[b] > extent[a]) {
                int longer = extent[b];
                extent[b] = extent[a];
                extent[a] = longer;
            }
}

/* Ranks on a grid, the last dimension fastest. */
struct grid {
    int dimensions, periodic, extent[4], at[4];
};

static inline struct grid grid_of(int dimensions, int periodic)
{
    struct grid grid = {.dimensions = dimensions, .periodic = periodic};
    balanced(dimensions, grid.extent);
    for (int d = dimensions - 1, left = rank; d >= 0; left /= grid.extent[d--])
        grid.at[d] = left % grid.extent[d];
    return grid;
}

/* Who lies so far away in each dimension; -1 for nobody. */
static inline int neighbour(const struct grid *grid, const int *by)
{
    int found = 0;
    for (int d = 0; d < grid->dimensions; d++) {
        int extent = grid->extent[d], to = grid->at[d] + by[d];
        if (grid->periodic)
            to = (to % extent + extent) % extent;
        else if (to < 0 || to >= extent)
            return -1;
        found = found * extent + to;
    }
    return found;
}

static inline int along(const struct grid *grid, int dimension, int by)
{
    int way[4] = {0, 0, 0, 0};
    way[dimension] = by;
    return neighbour(grid, way);
}

static inline void send(int count, int to, int tag)
{
    MPI_Send(out, count, MPI_DOUBLE, to, tag, MPI_COMM_WORLD);
}

static inline void receive(int count, int from, int tag)
{
    MPI_Status status;
    MPI_Recv(in, count, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, &status);
}

/* Requests that nobody has waited for yet. */
static MPI_Request requests[MOST_REQUESTS];
static int pending;

static inline void start_send(int count, int to, int tag)
{
    MPI_Isend(out, count, MPI_DOUBLE, to, tag, MPI_COMM_WORLD, &requests[pending++]);
}

static inline void start_receive(int count, int from, int tag)
{
    MPI_Irecv(in, count, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, &requests[pending++]);
}

static inline void wait_all(void)
{
    static MPI_Status statuses[MOST_REQUESTS];
    MPI_Waitall(pending, requests, statuses);
    pending = 0;
}

/* One after the other, in order. */
static inline void wait_each(void)
{
    for (int i = 0; i < pending; i++) {
        MPI_Status status;
        MPI_Wait(&requests[i], &status);
    }
    pending = 0;
}

static inline void sum_all(int count)
{
    MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static inline void broadcast(int count)
{
    MPI_Bcast(out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static inline void sum_at_root(int count)
{
    MPI_Reduce(out, in, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

#endif
