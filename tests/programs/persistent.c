/* Persistent requests, started one by one and together, completed in every way. argv[1]: rounds (default 5). */
#include "common.h"

int main(int argc, char **argv)
{
    static int in[4][16], out[4][16];
    static char space[8192 + 4 * MPI_BSEND_OVERHEAD];
    MPI_Request requests[8];
    MPI_Status statuses[8];
    int indices[8], done, flag, index, bytes;
    void *back;
    memset(statuses, 0, sizeof statuses);
    start(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    int left = (rank + size - 1) % size, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    int lower = rank > 0 ? rank - 1 : MPI_PROC_NULL;

    MPI_Buffer_attach(space, sizeof space);
    for (int i = 0; i < 4; i++)
        MPI_Recv_init(in[i], 16, MPI_INT, i < 3 ? lower : left, 50 + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Send_init(out[0], 16, MPI_INT, right, 50, MPI_COMM_WORLD, &requests[4]);
    MPI_Ssend_init(out[1], 15, MPI_INT, right, 51, MPI_COMM_WORLD, &requests[5]);
    MPI_Bsend_init(out[2], 14, MPI_INT, right, 52, MPI_COMM_WORLD, &requests[6]);
    MPI_Rsend_init(out[3], 13, MPI_INT, (rank + 1) % size, 53, MPI_COMM_WORLD, &requests[7]);

    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 16; k++)
                out[i][k] = rank + i * k + round;
        MPI_Startall(4, requests);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 4; i < 8; i++)
            MPI_Start(&requests[i]);
        switch (round % 4) {
        case 0:
            MPI_Waitall(8, requests, statuses);
            break;
        case 1:
            for (int i = 0; i < 8; i++)
                MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            break;
        case 2:
            do
                MPI_Waitany(8, requests, &index, statuses);
            while (index != MPI_UNDEFINED);
            break;
        default:
            for (done = 0; done != MPI_UNDEFINED;)
                MPI_Waitsome(8, requests, &done, indices, statuses);
        }
        for (int i = 0; i < 4; i++)
            see(in[i], 16);
    }
    /* Inactive requests complete at once. */
    MPI_Testall(8, requests, &flag, statuses);
    MPI_Wait(&requests[0], statuses);
    MPI_Test(&requests[4], &flag, statuses);
    MPI_Request_get_status(requests[1], &flag, statuses);
    for (int i = 0; i < 8; i++)
        MPI_Request_free(&requests[i]);
    MPI_Buffer_detach(&back, &bytes);

    /* The same again: freed handles and ids come back. */
    MPI_Recv_init(in[0], 16, MPI_INT, left, 54, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out[0], 16, MPI_INT, (rank + 1) % size, 54, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < rounds; round++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        see(in[0], 16);
    }
    MPI_Request_free(&requests[1]);
    MPI_Request_free(&requests[0]);
    finish("persistent");
}
