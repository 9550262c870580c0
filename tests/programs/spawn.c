/* Starts two more of itself, which let go of it before they end. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, value = 5;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm other;
    MPI_Comm_get_parent(&other);
    if (other == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
        MPI_Bcast(&value, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, other);
        MPI_Comm_disconnect(&other);
        if (rank == 0) puts("parent");
    } else {
        MPI_Bcast(&value, 1, MPI_INT, 0, other);
        MPI_Comm_disconnect(&other);
    }
    MPI_Finalize();
    return 0;
}
