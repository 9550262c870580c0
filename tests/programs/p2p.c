/* Point-to-point: every send mode, PROC_NULL, ANY_SOURCE, probes, matched probes, cancel. */
#include "common.h"

static int left, right;

static void blocking(void)
{
    int out[4] = {rank, rank + 1, rank + 2, rank + 3}, in[4] = {0};
    MPI_Status status;
    int count;

    /* Sendrecv closes the ring at any size. */
    MPI_Sendrecv(out, 4, MPI_INT, right, 1, in, 4, MPI_INT, left, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    see(in, count);
    MPI_Sendrecv(out, 2, MPI_INT, left, 2, in, 4, MPI_INT, right, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    see(in, 2);
    MPI_Sendrecv_replace(in, 2, MPI_INT, right, 3, left, 3, MPI_COMM_WORLD, &status);
    see(in, 2);

    MPI_Send(out, 4, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD);
    MPI_Recv(in, 4, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    see(&count, 1);
    MPI_Recv(in, 4, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    /* Up the line: rank r sends to r+1 in each mode, the ends do nothing. */
    for (int mode = 0; mode < 3; mode++) {
        if (rank > 0) {
            MPI_Recv(in, 4, MPI_INT, rank - 1, 10 + mode, MPI_COMM_WORLD, &status);
            see(in, 3);
        }
        if (rank < size - 1) {
            if (mode == 0)
                MPI_Send(out, 3, MPI_INT, rank + 1, 10, MPI_COMM_WORLD);
            else if (mode == 1)
                MPI_Ssend(out, 3, MPI_INT, rank + 1, 11, MPI_COMM_WORLD);
            else {
                static char space[4096 + MPI_BSEND_OVERHEAD];
                void *back;
                int bytes;
                MPI_Buffer_attach(space, sizeof space);
                MPI_Bsend(out, 3, MPI_INT, rank + 1, 12, MPI_COMM_WORLD);
                MPI_Buffer_detach(&back, &bytes);
            }
        }
    }
}

static void nonblocking(void)
{
    static int in[2][64], out[2][64];
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int lower = rank > 0 ? rank - 1 : MPI_PROC_NULL, upper = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 64; i++)
            out[0][i] = out[1][i] = rank * 100 + i + round;
        memset(in, 0, sizeof in);
        MPI_Irecv(in[0], 64, MPI_INT, lower, 20, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in[1], 64, MPI_INT, upper, 20, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(out[0], 64 - round, MPI_INT, lower, 20, MPI_COMM_WORLD, &requests[2]);
        MPI_Issend(out[1], 64 - round, MPI_INT, upper, 20, MPI_COMM_WORLD, &requests[3]);
        if (round == 1)
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        else
            MPI_Waitall(4, requests, statuses);
        see(in[0], 64);
        see(in[1], 64);
    }

    /* Ready sends: the receive is posted before the barrier. */
    MPI_Request receive, send;
    MPI_Irecv(in[0], 8, MPI_INT, lower, 21, MPI_COMM_WORLD, &receive);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend(out[0], 8, MPI_INT, upper, 21, MPI_COMM_WORLD);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Irecv(in[0], 8, MPI_INT, lower, 22, MPI_COMM_WORLD, &receive);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irsend(out[0], 8, MPI_INT, upper, 22, MPI_COMM_WORLD, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, &statuses[0]);
    see(in[0], 8);

    static char space[4096 + MPI_BSEND_OVERHEAD];
    void *back;
    int bytes;
    MPI_Buffer_attach(space, sizeof space);
    MPI_Ibsend(out[0], 8, MPI_INT, upper, 23, MPI_COMM_WORLD, &send);
    MPI_Recv(in[1], 8, MPI_INT, lower, 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&back, &bytes);
    see(in[1], 8);
}

/* Rank 0 hears from everybody in any order; the sum does not depend on it. */
static void wildcards(void)
{
    MPI_Status status;
    int in[8], count;
    if (rank > 0) {
        int out[8];
        for (int i = 0; i < 8; i++)
            out[i] = rank * 10 + i;
        MPI_Send(out, 1 + rank % 8, MPI_INT, 0, 30 + rank, MPI_COMM_WORLD);
        MPI_Send(out, 2, MPI_INT, 0, 29, MPI_COMM_WORLD);
        MPI_Send(out, 3, MPI_INT, 0, 28, MPI_COMM_WORLD);
        MPI_Send(out, 4, MPI_INT, 0, 27, MPI_COMM_WORLD);
        return;
    }
    long sum = 0;
    for (int i = 1; i < size; i++) {
        MPI_Probe(MPI_ANY_SOURCE, 30 + i, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Recv(in, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < count; k++)
            sum += in[k];
    }
    for (int i = 1; i < size; i++) {
        MPI_Recv(in, 8, MPI_INT, MPI_ANY_SOURCE, 29, MPI_COMM_WORLD, &status);
        sum += in[0] * in[1] + status.MPI_SOURCE;
    }
    for (int i = 1; i < size; i++) {
        int flag = 0;
        while (!flag)
            MPI_Iprobe(MPI_ANY_SOURCE, 28, MPI_COMM_WORLD, &flag, &status);
        MPI_Recv(in, 8, MPI_INT, status.MPI_SOURCE, 28, MPI_COMM_WORLD, &status);
        sum += in[2];
    }
    for (int i = 1; i < size; i++) {
        MPI_Message message;
        MPI_Request request;
        if (i % 2) {
            MPI_Mprobe(MPI_ANY_SOURCE, 27, MPI_COMM_WORLD, &message, &status);
            MPI_Mrecv(in, 8, MPI_INT, &message, &status);
        } else {
            int flag = 0;
            while (!flag)
                MPI_Improbe(MPI_ANY_SOURCE, 27, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
            MPI_Imrecv(in, 8, MPI_INT, &message, &request);
            MPI_Wait(&request, &status);
        }
        sum += in[3];
    }
    int shown = (int)(sum % 1000003);
    see(&shown, 1);
}

static void corners(void)
{
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int in[4] = {0}, flag;

    /* Nobody ever sends with tag 99: the probe finds nothing, the receive can only be cancelled. */
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, &status);
    MPI_Irecv(in, 4, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    see(&flag, 1);

    MPI_Probe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &status);
    MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(in, 4, MPI_INT, &message, &status);

    request = MPI_REQUEST_NULL;
    MPI_Wait(&request, &status);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    see(&flag, 1);

    /* A message to oneself, of no elements and of no buffer. */
    MPI_Irecv(NULL, 0, MPI_INT, rank, 6, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_INT, rank, 6, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Irecv(in, 1, MPI_INT, 0, 8, MPI_COMM_SELF, &request);
    MPI_Send(&rank, 1, MPI_INT, 0, 8, MPI_COMM_SELF);
    MPI_Request_get_status(request, &flag, &status);
    MPI_Wait(&request, &status);
    see(in, 1);

    /* A request that the program lets go of. */
    MPI_Isend(&rank, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &request);
    if (request != MPI_REQUEST_NULL)
        MPI_Request_free(&request);
    MPI_Recv(in, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    see(in, 1);
}

int main(int argc, char **argv)
{
    int flag;
    MPI_Initialized(&flag);
    start(&argc, &argv);
    MPI_Initialized(&flag);
    MPI_Finalized(&flag);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    blocking();
    nonblocking();
    wildcards();
    corners();
    finish("p2p");
}
