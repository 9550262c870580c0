/* Receives from any source that one thread begins and another one completes. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 20, MOST = 4 };

static MPI_Request requests[MOST];
static pthread_barrier_t turn;
static int size;

static void *complete(void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&turn);
        for (int i = 1; i < size; i++)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank, got[MOST];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST || provided != MPI_THREAD_MULTIPLE)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0) {
        pthread_t other;
        pthread_barrier_init(&turn, NULL, 2);
        pthread_create(&other, NULL, complete, NULL);
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 1; i < size; i++)
                MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
            pthread_barrier_wait(&turn);
            pthread_barrier_wait(&turn);
            for (int i = 1; i < size; i++)
                printf("got %d\n", got[i]);
        }
        pthread_join(other, NULL);
    } else {
        for (int round = 0; round < ROUNDS; round++)
            MPI_Send(&rank, 1, MPI_INT, 0, 10 * round + rank, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
