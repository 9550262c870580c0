/* Point-to-point with counts of type MPI_Count, and MPI_Isendrecv. */
#include "common.h"

static const MPI_Count four = 4;

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int out[4] = {rank, 1, 2, 3}, in[8] = {0}, flag, length;
    MPI_Count count;
    MPI_Request requests[10];
    MPI_Status status;
    MPI_Message message;

    int bytes = 4096 + 4 * MPI_BSEND_OVERHEAD;
    void *buffer = malloc((size_t)bytes);
    MPI_Buffer_attach_c(buffer, bytes);
    MPI_Bsend_c(out, four, MPI_INT, to, 1, MPI_COMM_WORLD);
    MPI_Recv_c(in, four, MPI_INT, from, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count_c(&status, MPI_INT, &count);
    checksum += count;
    MPI_Get_elements_c(&status, MPI_INT, &count);
    checksum += count;
    MPI_Get_elements_x(&status, MPI_INT, &count);
    MPI_Get_count_c(&status, MPI_DOUBLE_INT, &count);
    checksum += count;
    see(in, 4);

    /* The receives stand before anything that wants them ready. */
    for (int i = 0; i < 8; i++) {
        if (i % 2)
            MPI_Irecv_c(&in[i], 1, MPI_INT, from, 10 + i, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Recv_init_c(&in[i], 1, MPI_INT, from, 10 + i, MPI_COMM_WORLD, &requests[i]), MPI_Start(&requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send_c(&out[0], 1, MPI_INT, to, 10, MPI_COMM_WORLD);
    MPI_Ssend_c(&out[1], 1, MPI_INT, to, 11, MPI_COMM_WORLD);
    MPI_Rsend_c(&out[2], 1, MPI_INT, to, 12, MPI_COMM_WORLD);
    MPI_Isend_c(&out[3], 1, MPI_INT, to, 13, MPI_COMM_WORLD, &requests[8]);
    MPI_Wait(&requests[8], MPI_STATUS_IGNORE);
    MPI_Issend_c(&out[0], 1, MPI_INT, to, 14, MPI_COMM_WORLD, &requests[8]);
    MPI_Wait(&requests[8], MPI_STATUS_IGNORE);
    MPI_Irsend_c(&out[1], 1, MPI_INT, to, 15, MPI_COMM_WORLD, &requests[8]);
    MPI_Wait(&requests[8], MPI_STATUS_IGNORE);
    MPI_Ibsend_c(&out[2], 1, MPI_INT, to, 16, MPI_COMM_WORLD, &requests[8]);
    MPI_Wait(&requests[8], MPI_STATUS_IGNORE);
    MPI_Send_init_c(&out[3], 1, MPI_INT, to, 17, MPI_COMM_WORLD, &requests[8]);
    MPI_Start(&requests[8]);
    MPI_Wait(&requests[8], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[8]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    see(in, 8);
    for (int i = 0; i < 8; i += 2)
        MPI_Request_free(&requests[i]);

    /* The other persistent ones. */
    MPI_Irecv_c(&in[0], 1, MPI_INT, from, 20, MPI_COMM_WORLD, &requests[3]);
    MPI_Irecv_c(&in[1], 1, MPI_INT, from, 21, MPI_COMM_WORLD, &requests[4]);
    MPI_Irecv_c(&in[2], 1, MPI_INT, from, 22, MPI_COMM_WORLD, &requests[5]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Ssend_init_c(&out[0], 1, MPI_INT, to, 20, MPI_COMM_WORLD, &requests[0]);
    MPI_Rsend_init_c(&out[1], 1, MPI_INT, to, 21, MPI_COMM_WORLD, &requests[1]);
    MPI_Bsend_init_c(&out[2], 1, MPI_INT, to, 22, MPI_COMM_WORLD, &requests[2]);
    MPI_Startall(3, requests);
    MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
    see(in, 3);
    for (int i = 0; i < 3; i++)
        MPI_Request_free(&requests[i]);
    MPI_Count attached;
    void *detached;
    MPI_Buffer_detach_c(&detached, &attached);
    checksum += (long)attached - bytes + (detached == buffer);

    MPI_Sendrecv_c(out, four, MPI_INT, to, 30, in, four, MPI_INT, from, 30, MPI_COMM_WORLD, &status);
    see(in, 4);
    MPI_Sendrecv_replace_c(in, four, MPI_INT, to, 31, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    see(in, 4);
    MPI_Isendrecv(out, 4, MPI_INT, to, 32, in, 4, MPI_INT, from, 32, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], &status);
    see(in, 4);
    MPI_Isendrecv_c(out, four, MPI_INT, to, 33, in, four, MPI_INT, from, 33, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Isendrecv_replace(in, 4, MPI_INT, to, 34, from, 34, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Isendrecv_replace_c(in, four, MPI_INT, to, 35, MPI_ANY_SOURCE, 35, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], &status);
    see(in, 4);

    MPI_Isend_c(out, four, MPI_INT, to, 40, MPI_COMM_WORLD, &requests[0]);
    MPI_Mprobe(from, 40, MPI_COMM_WORLD, &message, &status);
    MPI_Get_count(&status, MPI_INT, &length);
    MPI_Mrecv_c(in, length, MPI_INT, &message, &status);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    see(in, length);
    MPI_Isend_c(out, four, MPI_INT, to, 41, MPI_COMM_WORLD, &requests[0]);
    do
        MPI_Improbe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    while (!flag);
    MPI_Imrecv_c(in, four, MPI_INT, &message, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    see(in, 4);
    free(buffer);
    finish("large_p2p");
    return 0;
}
