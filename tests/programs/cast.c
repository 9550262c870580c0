/* A dynamic window whose addresses are told to others without asking MPI for them. */
#include <mpi.h>
#include <stdint.h>

int main(int argc, char **argv)
{
    static int cells[4];
    int rank, value = 7;
    MPI_Win win;
    MPI_Aint here = (MPI_Aint)(intptr_t)cells, there = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, cells, sizeof cells);
    MPI_Sendrecv(&here, 1, MPI_AINT, 1 - rank, 0, &there, 1, MPI_AINT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock_all(0, win);
    MPI_Put(&value, 1, MPI_INT, 1 - rank, there, 1, MPI_INT, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(win, cells);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
