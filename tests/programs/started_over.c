/* A persistent receive that one thread starts again and again, and frees, and another one completes. */
#include <mpi.h>
#include <pthread.h>

enum { ROUNDS = 50 };

static MPI_Request request;
static pthread_barrier_t turn;

static void *complete(void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&turn);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank, got;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided != MPI_THREAD_MULTIPLE)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0) {
        pthread_t other;
        pthread_barrier_init(&turn, NULL, 2);
        MPI_Recv_init(&got, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
        pthread_create(&other, NULL, complete, NULL);
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Start(&request);
            pthread_barrier_wait(&turn);
            pthread_barrier_wait(&turn);
        }
        pthread_join(other, NULL);
        MPI_Request_free(&request);
    } else if (rank == 1) {
        for (int round = 0; round < ROUNDS; round++)
            MPI_Send(&round, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
