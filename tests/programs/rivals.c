/* Two threads of rank 0 that receive from rank 1, on one communicator: with one tag, so that which thread gets which message is a
 * matter of who asks first; with the argument "apart", each with a tag of its own, from any source. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 20, THREADS = 2, MOST = 4 };

static int tags[THREADS] = {5, 5}, sums[THREADS];

static void *receive(void *which)
{
    int me = *(int *)which, got[MOST], length;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Status status;
        MPI_Recv(got, MOST, MPI_INT, MPI_ANY_SOURCE, tags[me], MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &length);
        sums[me] += got[length - 1];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank, numbers[THREADS] = {0, 1}, values[MOST] = {1, 2, 3, 4};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided != MPI_THREAD_MULTIPLE)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (argc > 1 && strcmp(argv[1], "apart") == 0)
        tags[1] = 6;
    if (rank == 0) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, receive, &numbers[i]);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        printf("rivals: %d\n", sums[0] + sums[1]);
    } else if (rank == 1) {
        for (int i = 0; i < ROUNDS * THREADS; i++)
            MPI_Send(values, 1 + i % MOST, MPI_INT, 0, tags[i % THREADS], MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
