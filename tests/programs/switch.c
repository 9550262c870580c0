/* Recording switched on and off by the program: requests, communicators and datatypes live across the switches.
   switch sleep: no switch, but a pause of three seconds between two halves. */
#include "common.h"

#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int pause = argc > 1 && strcmp(argv[1], "sleep") == 0;
    long sum = 0, all = 0;
    for (int step = 0; step < 4; step++) {
        int next = (rank + 1) % size, last = (rank + size - 1) % size;
        int sent[4] = {rank, step, 2, 3}, got[4] = {0, 0, 0, 0};
        MPI_Request requests[2];
        MPI_Irecv(got, 4, MPI_INT, last, step, MPI_COMM_WORLD, &requests[0]);
        if (!pause) {
            MPI_Pcontrol(step % 2);
        } else if (step == 2) {
            sleep(3);
        }
        /* Made while recording may be off, used when it is on again. */
        MPI_Comm half, twin;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
        MPI_Comm_dup(half, &twin);
        MPI_Datatype pair;
        MPI_Type_contiguous(2, MPI_INT, &pair);
        MPI_Type_commit(&pair);
        MPI_Isend(sent, 2, pair, next, step, MPI_COMM_WORLD, &requests[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        if (!pause) {
            MPI_Pcontrol(1 + step);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        int half_rank, half_size;
        MPI_Comm_rank(twin, &half_rank);
        MPI_Comm_size(twin, &half_size);
        MPI_Sendrecv(sent, 1, pair, (half_rank + 1) % half_size, 9, got, 1, pair,
                     (half_rank + half_size - 1) % half_size, 9, twin, MPI_STATUS_IGNORE);
        sum += got[0] + got[1];
        MPI_Type_free(&pair);
        MPI_Comm_free(&half);
        MPI_Comm_free(&twin);
    }
    MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("switch: %d ranks, sum %ld\n", size, all);
    }
    MPI_Finalize();
    return 0;
}
