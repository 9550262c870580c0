/* Partitioned communication: a message that is handed over in pieces. */
#include "common.h"

enum { PARTITIONS = 6, EACH = 3 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int to = (rank + 1) % size, from = (rank + size - 1) % size, flag;
    int out[PARTITIONS * EACH], in[PARTITIONS * EACH] = {0}, some[2] = {4, 2};
    MPI_Request requests[2];
    MPI_Info info;
    MPI_Status statuses[2];
    MPI_Info_create(&info);
    MPI_Psend_init(out, PARTITIONS, EACH, MPI_INT, to, 5, MPI_COMM_WORLD, info, &requests[0]);
    MPI_Precv_init(in, PARTITIONS, EACH, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PARTITIONS * EACH; i++)
            out[i] = rank * 100 + i + round;
        MPI_Startall(2, requests);
        MPI_Pready(0, requests[0]);
        MPI_Pready_list(2, some, requests[0]);
        MPI_Pready(1, requests[0]);
        MPI_Pready(3, requests[0]);
        MPI_Pready_range(5, 5, requests[0]);
        do
            MPI_Parrived(requests[1], PARTITIONS - 1, &flag);
        while (!flag);
        MPI_Waitall(2, requests, statuses);
        see(in, PARTITIONS * EACH);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Info_free(&info);
    finish("partitioned");
    return 0;
}
