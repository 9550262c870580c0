/* OSU micro-benchmarks: for messages of 1, 2, 4 ... 4096 numbers one loop each. Point to point and one-sided loops go between rank r
 * and r + half, so all ranks are busy (with two ranks: osu_latency, osu_bw, osu_bibw, osu_put_latency ...; with more: osu_multi_lat,
 * osu_mbw_mr). Pilgrim section 4.1. Ranks: even; any for collectives. argv[1]: steps of each loop; argv[2]: which of
 * LOOPS (default latency); the last if there is none of this name. */
#include "papers.h"
#include <string.h>

enum { WINDOW = 64, LARGEST = 4096 };

static int partner, is_first;

static void latency(int count)
{
    for (int step = 0; step < steps; step++) {
        if (is_first)
            send(count, partner, 1);
        receive(count, partner, 1);
        if (!is_first)
            send(count, partner, 1);
    }
}

static void bandwidth(int count)
{
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < WINDOW; i++)
            if (is_first)
                start_send(count, partner, 100);
            else
                start_receive(count, partner, 100);
        wait_all();
        if (is_first)
            receive(1, partner, 101);
        else
            send(1, partner, 101);
    }
}

static void both_ways(int count)
{
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < WINDOW; i++)
            start_receive(count, partner, is_first ? 10 : 100);
        for (int i = 0; i < WINDOW; i++)
            start_send(count, partner, is_first ? 100 : 10);
        wait_all();
    }
}

static const char *which;

static void collective(int count)
{
    for (int step = 0; step < steps; step++) {
        if (strcmp(which, "allreduce") == 0)
            sum_all(count);
        else if (strcmp(which, "bcast") == 0)
            broadcast(count);
        else if (strcmp(which, "reduce") == 0)
            sum_at_root(count);
        else if (strcmp(which, "alltoall") == 0)
            MPI_Alltoall(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD);
        else if (strcmp(which, "allgather") == 0)
            MPI_Allgather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int summary = 0; summary < 3; summary++)
        sum_at_root(1);
}

static void one_sided(int count)
{
    MPI_Win window;
    MPI_Win_create(in, LARGEST * sizeof *in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (is_first) {
        MPI_Win_lock(MPI_LOCK_SHARED, partner, 0, window);
        for (int step = 0; step < steps; step++) {
            if (strcmp(which, "put") == 0)
                MPI_Put(out, count, MPI_DOUBLE, partner, 0, count, MPI_DOUBLE, window);
            else if (strcmp(which, "get") == 0)
                MPI_Get(out, count, MPI_DOUBLE, partner, 0, count, MPI_DOUBLE, window);
            else
                MPI_Accumulate(out, count, MPI_DOUBLE, partner, 0, count, MPI_DOUBLE, MPI_SUM, window);
            MPI_Win_flush(partner, window);
        }
        MPI_Win_unlock(partner, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
}

static const struct {
    const char *name;
    void (*loop)(int count);
    int in_pairs;
} LOOPS[] = {
    {"latency", latency, 1},     {"bw", bandwidth, 1},         {"bibw", both_ways, 1},       {"allreduce", collective, 0},
    {"bcast", collective, 0},    {"reduce", collective, 0},    {"alltoall", collective, 0},  {"allgather", collective, 0},
    {"barrier", collective, 0},  {"put", one_sided, 1},        {"get", one_sided, 1},        {"acc", one_sided, 1},
};

int main(int argc, char **argv)
{
    start(&argc, &argv);
    which = argc > 2 ? argv[2] : "latency";
    partner = (rank + size / 2) % size;
    is_first = rank < size / 2;
    size_t i = 0;
    while (i + 1 < sizeof LOOPS / sizeof *LOOPS && strcmp(which, LOOPS[i].name) != 0)
        i++;
    need(!LOOPS[i].in_pairs || size % 2 == 0, "even");
    for (int count = 1; count <= LARGEST; count *= 2) {
        MPI_Barrier(MPI_COMM_WORLD);
        LOOPS[i].loop(count);
    }
    finish();
}
