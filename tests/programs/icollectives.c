/* All non-blocking collectives, several in flight at once. argv[1]: rounds (default 2). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int n = 2, rounds = argc > 1 ? atoi(argv[1]) : 2;
    size_t bytes = sizeof(int) * n * size;
    int *in[16], *out[16], *counts = malloc(sizeof(int) * size), *places = malloc(sizeof(int) * size);
    int *byte_places = malloc(sizeof(int) * size);
    MPI_Datatype *types = malloc(sizeof(MPI_Datatype) * size);
    MPI_Request requests[17];
    MPI_Status statuses[17];
    memset(statuses, 0, sizeof statuses);
    for (int i = 0; i < 16; i++) {
        in[i] = malloc(bytes);
        out[i] = calloc(1, bytes);
    }
    for (int i = 0; i < size; i++) {
        counts[i] = n;
        places[i] = n * i;
        byte_places[i] = n * i * (int)sizeof(int);
        types[i] = MPI_INT;
    }

    for (int round = 0; round < rounds; round++) {
        int root = round % size, r = 0;
        for (int i = 0; i < 16; i++)
            for (int k = 0; k < n * size; k++)
                in[i][k] = rank * 7 + i * 3 + k + round;
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[r++]);
        MPI_Ibcast(in[0], n, MPI_INT, root, MPI_COMM_WORLD, &requests[r++]);
        MPI_Igather(in[1], n, MPI_INT, out[1], n, MPI_INT, root, MPI_COMM_WORLD, &requests[r++]);
        MPI_Igatherv(in[2], n, MPI_INT, out[2], counts, places, MPI_INT, root, MPI_COMM_WORLD, &requests[r++]);
        MPI_Iscatter(in[3], n, MPI_INT, out[3], n, MPI_INT, root, MPI_COMM_WORLD, &requests[r++]);
        MPI_Iscatterv(in[4], counts, places, MPI_INT, out[4], n, MPI_INT, root, MPI_COMM_WORLD, &requests[r++]);
        MPI_Iallgather(in[5], n, MPI_INT, out[5], n, MPI_INT, MPI_COMM_WORLD, &requests[r++]);
        MPI_Iallgatherv(in[6], n, MPI_INT, out[6], counts, places, MPI_INT, MPI_COMM_WORLD, &requests[r++]);
        MPI_Ialltoall(in[7], n, MPI_INT, out[7], n, MPI_INT, MPI_COMM_WORLD, &requests[r++]);
        MPI_Ialltoallv(in[8], counts, places, MPI_INT, out[8], counts, places, MPI_INT, MPI_COMM_WORLD,
                       &requests[r++]);
        MPI_Ialltoallw(in[9], counts, byte_places, types, out[9], counts, byte_places, types, MPI_COMM_WORLD,
                       &requests[r++]);
        MPI_Ireduce(in[10], out[10], n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, &requests[r++]);
        MPI_Iallreduce(in[11], out[11], n, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[r++]);
        MPI_Ireduce_scatter(in[12], out[12], counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[r++]);
        MPI_Ireduce_scatter_block(in[13], out[13], n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[r++]);
        MPI_Iscan(in[14], out[14], n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[r++]);
        MPI_Iexscan(in[15], out[15], n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[r++]);
        if (round % 2)
            MPI_Waitall(r, requests, statuses);
        else
            while (r-- > 0)
                MPI_Wait(&requests[r], MPI_STATUS_IGNORE);
        see(in[0], n);
        for (int i = 1; i < 15; i++)
            see(out[i], n);
    }
    MPI_Iallreduce(MPI_IN_PLACE, in[0], n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    see(in[0], n);
    for (int i = 0; i < 16; i++) {
        free(in[i]);
        free(out[i]);
    }
    free(types);
    free(byte_places);
    free(places);
    free(counts);
    finish("icollectives");
}
