/* Threads that call MPI at once: each has a communicator of its own and talks to the threads of the same number on the
 * neighbouring ranks. Datatypes are made by one thread and used by all, requests are started by one and completed by
 * another, and everywhere objects are freed and made, so that handles go from thread to thread. With a second argument
 * of 1 there is one thread, which does the same work for all. */
#include "common.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, COUNT = 8 };

static MPI_Comm comms[THREADS];
static MPI_Datatype shared;
static int rounds = 4, threads = THREADS;
static pthread_barrier_t barrier;

static struct {
    MPI_Request requests[2];
    int out[COUNT], in[COUNT];
} handed[THREADS];

static long sums[THREADS];

static void take(int t, const int *values, int n)
{
    for (int i = 0; i < n; i++)
        sums[t] = (sums[t] * 31 + values[i]) % 1000003;
}

static void wait_for_all(void)
{
    if (threads > 1)
        pthread_barrier_wait(&barrier);
}

static void fill(int *values, int t, int round)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = rank * 1000 + t * 100 + round * 10 + i;
}

static void start_exchange(int t, int tag, int *out, int *in, MPI_Request *requests)
{
    MPI_Irecv(in, COUNT, MPI_INT, (rank + size - 1) % size, tag, comms[t], &requests[0]);
    MPI_Isend(out, COUNT, MPI_INT, (rank + 1) % size, tag, comms[t], &requests[1]);
}

static void all_at_once(int t, int round)
{
    MPI_Request requests[2];
    int out[COUNT], in[COUNT];
    fill(out, t, round);
    start_exchange(t, 1, out, in, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    take(t, in, COUNT);
}

static void one_by_one(int t, int round)
{
    MPI_Request requests[2];
    MPI_Status status;
    int out[COUNT], in[COUNT], index = 0, flag = 0;
    fill(out, t, round);
    start_exchange(t, 2, out, in, requests);
    for (int done = 0; done < 2;) {
        MPI_Testany(2, requests, &index, &flag, &status);
        if (flag && index != MPI_UNDEFINED)
            done++;
        else
            sched_yield();
    }
    take(t, in, COUNT);
}

/* The tag says how long the type is. */
static void own_types(int t, int round)
{
    for (int k = 0; k < 3; k++) {
        int length = 1 + (t + k + round) % 4, out[COUNT], in[COUNT] = {0};
        MPI_Datatype type;
        MPI_Info info;
        fill(out, t, round);
        MPI_Type_contiguous(length, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Info_create(&info);
        MPI_Sendrecv(out, 1, type, (rank + 1) % size, 10 + length, in, 1, type, (rank + size - 1) % size, 10 + length,
                     comms[t], MPI_STATUS_IGNORE);
        MPI_Info_free(&info);
        MPI_Type_free(&type);
        take(t, in, length);
    }
}

static void own_communicator(int t, int round)
{
    MPI_Comm comm;
    int value = rank + t + round;
    MPI_Comm_dup(comms[t], &comm);
    MPI_Bcast(&value, 1, MPI_INT, round % size, comm);
    MPI_Comm_free(&comm);
    take(t, &value, 1);
}

static void shared_type(int t, int round)
{
    int out[COUNT], in[COUNT] = {0};
    fill(out, t, round);
    MPI_Sendrecv(out, 1, shared, (rank + 1) % size, 3, in, 1, shared, (rank + size - 1) % size, 3, comms[t],
                 MPI_STATUS_IGNORE);
    take(t, in, COUNT);
}

static void make_shared(int round)
{
    MPI_Type_vector(2, 1 + round % 2, 4, MPI_INT, &shared);
    MPI_Type_commit(&shared);
}

static void step(int t, int round)
{
    all_at_once(t, round);
    own_types(t, round);
    one_by_one(t, round);
    own_communicator(t, round);
    shared_type(t, round);
}

static void start_handed(int t, int round)
{
    fill(handed[t].out, t, round);
    start_exchange(t, 4, handed[t].out, handed[t].in, handed[t].requests);
}

static void complete_handed(int t)
{
    int from = (t + 1) % THREADS;
    MPI_Waitall(2, handed[from].requests, MPI_STATUSES_IGNORE);
    take(t, handed[from].in, COUNT);
}

static void *work(void *number)
{
    int t = *(int *)number;
    for (int round = 0; round < rounds; round++) {
        if (t == 0)
            make_shared(round);
        wait_for_all();
        step(t, round);
        start_handed(t, round);
        wait_for_all();
        if (t == 0)
            MPI_Type_free(&shared);
        complete_handed(t);
        wait_for_all();
    }
    return NULL;
}

static void work_for_all(void)
{
    for (int round = 0; round < rounds; round++) {
        make_shared(round);
        for (int t = 0; t < THREADS; t++)
            step(t, round);
        for (int t = 0; t < THREADS; t++)
            start_handed(t, round);
        MPI_Type_free(&shared);
        for (int t = 0; t < THREADS; t++)
            complete_handed(t);
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        rounds = atoi(argv[1]);
    if (argc > 2)
        threads = atoi(argv[2]);
    if (threads > 1 && provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "MPI_THREAD_MULTIPLE is not to be had\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    if (threads == 1) {
        work_for_all();
    } else {
        pthread_t others[THREADS];
        int numbers[THREADS];
        pthread_barrier_init(&barrier, NULL, THREADS);
        for (int t = 0; t < THREADS; t++) {
            numbers[t] = t;
            if (pthread_create(&others[t], NULL, work, &numbers[t]))
                MPI_Abort(MPI_COMM_WORLD, 1);
        }
        for (int t = 0; t < THREADS; t++)
            pthread_join(others[t], NULL);
    }
    for (int t = 0; t < THREADS; t++) {
        checksum = (checksum + sums[t]) % 1000003;
        MPI_Comm_free(&comms[t]);
    }
    finish("threads4");
    return 0;
}
