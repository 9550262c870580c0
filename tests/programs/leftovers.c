/* What MPI leaves unwritten: statuses of operations that have none, arrays with more room than the call uses. All of it lies
 * on a stack full of rubbish that is another in every run. */
#include "common.h"

#include <time.h>
#include <unistd.h>

enum { ROOM = 12 };

OWN_FRAME static void litter(void)
{
    volatile unsigned words[2048];
    unsigned x = (unsigned)getpid() * 2654435761u ^ (unsigned)clock();
    for (int i = 0; i < 2048; i++)
        words[i] = x = x * 1664525u + 1013904223u;
    if (words[rank % 2048] == 1 && words[1] == 2)
        checksum++;
}

OWN_FRAME static void sends(int persistent)
{
    MPI_Request requests[6];
    MPI_Status status, statuses[6];
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    int out[3] = {rank, rank + 1, rank + 2}, in[3] = {0, 0, 0}, index, count, cancelled, done, indices[6];
    for (int i = 0; i < 3; i++)
        if (persistent) {
            MPI_Recv_init(&in[i], 1, MPI_INT, last, i, MPI_COMM_WORLD, &requests[i]);
            MPI_Ssend_init(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[3 + i]);
        } else {
            MPI_Irecv(&in[i], 1, MPI_INT, last, i, MPI_COMM_WORLD, &requests[i]);
            MPI_Issend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[3 + i]);
        }
    if (persistent)
        MPI_Startall(6, requests);
    MPI_Waitall(3, requests, statuses);
    for (int i = 0; i < 3; i++) {
        MPI_Get_count(&statuses[i], MPI_INT, &count);
        see(&count, 1);
    }
    MPI_Wait(&requests[3], &status);
    MPI_Test_cancelled(&status, &cancelled);
    see(&cancelled, 1);
    /* The others are received already, and so complete sooner or later. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitany(1, &requests[4], &index, &status);
    MPI_Waitsome(1, &requests[5], &done, indices, statuses);
    MPI_Waitany(0, requests, &index, &status);
    if (persistent) {
        MPI_Startall(6, requests);
        MPI_Waitall(6, requests, statuses);
        for (int i = 0; i < 6; i++)
            MPI_Request_free(&requests[i]);
    }
    see(in, 3);
    see(&index, 1);
}

/* Of a receive that was cancelled nothing but that is defined. */
OWN_FRAME static void cancelled(void)
{
    MPI_Request request;
    MPI_Status status;
    int in = 0, yes;
    for (int i = 0; i < 4; i++) {
        MPI_Irecv(&in, 1, MPI_INT, rank, 99, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &yes);
        see(&yes, 1);
    }
}

static int nothing(void *state, MPI_Status *status)
{
    (void)state, (void)status;
    return MPI_SUCCESS;
}
static int elements(void *state, MPI_Status *status) { return MPI_Status_set_elements(status, MPI_INT, *(int *)state); }
static int leave(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}
static int stop(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

OWN_FRAME static void others(void)
{
    MPI_Request request, requests[2];
    MPI_Status status, statuses[2];
    MPI_Win win;
    static int window;
    int four = 4, sum = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    requests[1] = MPI_REQUEST_NULL;
    MPI_Waitall(2, requests, statuses);
    MPI_Grequest_start(nothing, leave, stop, NULL, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Grequest_start(elements, leave, stop, &four, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    for (int i = 0; i < 2; i++) {
        MPI_Grequest_start(elements, leave, stop, &four, &requests[i]);
        MPI_Grequest_complete(requests[i]);
    }
    MPI_Waitall(2, requests, statuses);
    MPI_Grequest_start(elements, leave, stop, &four, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Grequest_start(nothing, leave, stop, NULL, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Win_create(&window, sizeof window, sizeof window, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    MPI_Rput(&four, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win, &request);
    MPI_Wait(&request, &status);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    see(&window, 1);
    MPI_Recv(&sum, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
}

OWN_FRAME static void arrays(void)
{
    int a[ROOM], b[ROOM], c[ROOM], n = size < 2 ? 1 : 2;
    int index[2] = {1, 2}, edges[2] = {n - 1, 0}, dims[1] = {size}, periods[1] = {1}, next = (rank + 1) % size;
    MPI_Aint addresses[ROOM];
    MPI_Datatype types[ROOM], vector;
    MPI_Comm comm;
    MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &comm);
    if (comm != MPI_COMM_NULL) {
        MPI_Graph_get(comm, ROOM, ROOM, a, b);
        see(a, n);
        see(b, n);
        MPI_Graph_neighbors(comm, n - 1, ROOM, c);
        see(c, 1);
        MPI_Comm_free(&comm);
    }
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
    MPI_Cart_get(comm, ROOM, a, b, c);
    see(c, 1);
    MPI_Comm_free(&comm);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, (int[]){1}, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    MPI_Dist_graph_neighbors(comm, 1, a, b, 1, c, b + 6);
    see(c, 1);
    MPI_Comm_free(&comm);
    MPI_Type_vector(2, 3, 5, MPI_INT, &vector);
    /* Open MPI 4.1 looks at all the types that there is room for. */
    MPI_Type_get_contents(vector, ROOM, ROOM, 1, a, addresses, types);
    see(a, 3);
    MPI_Type_free(&vector);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int round = 0; round < 3; round++) {
        litter();
        sends(0);
        litter();
        sends(1);
        litter();
        cancelled();
        litter();
        others();
        litter();
        arrays();
    }
    finish("leftovers");
    return 0;
}
