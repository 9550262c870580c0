/* Threads that are created and joined in every step, as a program without a pool of threads does it. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3 };

static MPI_Comm comms[THREADS];
static int rank, size;

static void *exchange(void *number)
{
    int t = *(int *)number, got = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, t, &got, 1, MPI_INT, (rank + size - 1) % size, t, comms[t],
                 MPI_STATUS_IGNORE);
    if (got != (rank + size - 1) % size) {
        fprintf(stderr, "thread %d got %d\n", t, got);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, steps = argc > 1 ? atoi(argv[1]) : 1000;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    for (int step = 0; step < steps; step++) {
        pthread_t threads[THREADS];
        int numbers[THREADS];
        for (int t = 0; t < THREADS; t++) {
            numbers[t] = t;
            pthread_create(&threads[t], NULL, exchange, &numbers[t]);
        }
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
    }
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&comms[t]);
    if (rank == 0)
        puts("done");
    MPI_Finalize();
    return 0;
}
