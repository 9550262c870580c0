/* Arrays without elements, given as NULL. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, outcount, integers, addresses, datatypes, combiner, contents[1], size = -1;
    MPI_Datatype nothing, pair, of[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Waitsome(0, NULL, &outcount, NULL, MPI_STATUSES_IGNORE);
    MPI_Type_create_struct(0, NULL, NULL, NULL, &nothing);
    MPI_Type_commit(&nothing);
    MPI_Type_size(nothing, &size);
    MPI_Bcast(NULL, 0, nothing, 0, MPI_COMM_WORLD);
    MPI_Type_free(&nothing);
    MPI_Dims_create(1, 0, NULL);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_get_envelope(pair, &integers, &addresses, &datatypes, &combiner);
    MPI_Type_get_contents(pair, integers, addresses, datatypes, contents, NULL, of);
    MPI_Type_free(&pair);
    if (rank == 0) printf("nulls: %d\n", size);
    MPI_Finalize();
    return 0;
}
