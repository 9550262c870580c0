// An error handler that throws: the exception passes through MPI and through us.
#include <cstdio>
#include <mpi.h>
#include <stdexcept>

static void handler(MPI_Comm *, int *, ...) { throw std::runtime_error("thrown"); }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Errhandler throwing;
    MPI_Comm_create_errhandler(handler, &throwing);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, throwing);
    int value = 0, rank = -1, caught = 0;
    for (int i = 0; i < 3; i++) {
        try {
            MPI_Send(&value, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD);
        } catch (const std::exception &) {
            caught++;
        }
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    std::printf("caught %d on rank %d\n", caught, rank);
    MPI_Finalize();
}
