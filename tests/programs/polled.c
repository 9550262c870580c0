/* Polls that find nothing, of requests to which a library may give one handle: sends of a few bytes are complete at once. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, value = 7, done = 0, got = 0;
    MPI_Request requests[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Irecv(&got, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[2]);
        for (int i = 0; i < 3; i++) {
            MPI_Testall(3, requests, &done, MPI_STATUSES_IGNORE);
            if (done)
                fprintf(stderr, "nobody has sent anything yet\n");
        }
        MPI_Send(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        for (int tag = 1; tag <= 2; tag++)
            MPI_Recv(&got, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
