/* Generalised requests that one thread starts and waits for, and another one completes; and messages that the other one sends
 * from a buffer which the first has attached. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 20 };

static MPI_Request request;
static pthread_barrier_t turn;
static int rank, size;

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 1);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

static void *other(void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&turn);
        MPI_Bsend(&round, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD);
        MPI_Grequest_complete(request);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, got, sum = 0, bytes;
    pthread_t thread;
    void *buffer;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided != MPI_THREAD_MULTIPLE)
        MPI_Abort(MPI_COMM_WORLD, 1);
    pthread_barrier_init(&turn, NULL, 2);
    bytes = ROUNDS * (MPI_BSEND_OVERHEAD + 64);
    buffer = malloc(bytes);
    MPI_Buffer_attach(buffer, bytes);
    pthread_create(&thread, NULL, other, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Grequest_start(query, release, cancel, NULL, &request);
        pthread_barrier_wait(&turn);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_barrier_wait(&turn);
        sum += got;
    }
    pthread_join(thread, NULL);
    MPI_Buffer_detach(&buffer, &bytes);
    free(buffer);
    if (rank == 0)
        printf("promises: %d\n", sum);
    MPI_Finalize();
    return 0;
}
