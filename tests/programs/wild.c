/* Receives from any source and with any tag whose status nobody wants, in every form. The payload says who sent it and
 * with which tag: rank 0 prints what it got, one line for each message in the order of its receives. */
#include "common.h"

enum { ROUNDS = 3, FORMS = 9 };

static void got(const char *how, const int *message)
{
    printf("%s %d %d\n", how, message[0], message[1]);
    checksum = (checksum + message[0] * 100 + message[1]) % 1000003;
}

/* As many messages as rank 0 receives of each sender. */
static void send_all(int round)
{
    for (int form = 0; form < FORMS; form++) {
        int message[2] = {rank, 10 * (form + 1) + (rank * 7 + round) % 3};
        MPI_Send(message, 2, MPI_INT, 0, message[1], MPI_COMM_WORLD);
    }
}

static void receive_blocking(void)
{
    int message[2];
    MPI_Recv(message, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    got("recv", message);
}

static void receive_replacing(void)
{
    int message[2] = {0, 0};
    MPI_Sendrecv_replace(message, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    got("replace", message);
}

static void receive_probed(void)
{
    int message[2], flag = 0;
    while (!flag)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(message, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    got("recv", message);
}

static void receive_one(int test)
{
    int message[2], flag = 0;
    MPI_Request request;
    MPI_Irecv(message, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    if (test)
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    else
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    got("irecv", message);
}

/* Also a send, and one that is null. */
static void receive_all(int n)
{
    int messages[32][2], mine = 5, back = 0;
    MPI_Request requests[35];
    for (int i = 0; i < n; i++)
        MPI_Irecv(messages[i], 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
    requests[n] = MPI_REQUEST_NULL;
    MPI_Irecv(&back, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &requests[n + 1]);
    MPI_Isend(&mine, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &requests[n + 2]);
    MPI_Waitall(n + 3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        got("irecv", messages[i]);
}

static void receive_any(int n)
{
    int messages[32][2];
    MPI_Request requests[32];
    for (int i = 0; i < n; i++)
        MPI_Irecv(messages[i], 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0, index; i < n; i++)
        MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        got("irecv", messages[i]);
}

static void receive_some(int n)
{
    int messages[32][2], indices[32];
    MPI_Request requests[32];
    for (int i = 0; i < n; i++)
        MPI_Irecv(messages[i], 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
    for (int done = 0, count; done < n; done += count)
        MPI_Waitsome(n, requests, &count, indices, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        got("irecv", messages[i]);
}

static void receive_persistent(int n, MPI_Request *requests, int messages[][2])
{
    MPI_Startall(n, requests);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        got("start", messages[i]);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int n = size - 1, messages[32][2];
    MPI_Request requests[32];
    if (rank == 0)
        for (int i = 0; i < n; i++)
            MPI_Recv_init(messages[i], 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank != 0) {
            send_all(round);
            continue;
        }
        for (int i = 0; i < n; i++) receive_blocking();
        for (int i = 0; i < n; i++) receive_replacing();
        for (int i = 0; i < n; i++) receive_probed();
        for (int i = 0; i < n; i++) receive_one(0);
        for (int i = 0; i < n; i++) receive_one(1);
        receive_all(n);
        receive_any(n);
        receive_some(n);
        receive_persistent(n, requests, messages);
    }
    if (rank == 0)
        for (int i = 0; i < n; i++)
            MPI_Request_free(&requests[i]);
    finish("wild");
}
