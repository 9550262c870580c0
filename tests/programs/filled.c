/* What a preload that fills outputs has put where MPI writes nothing: the dimensions that a grid does not have, and the
 * status of a send. Rank 0 says it before, inside and after a call that is left by a jump out of an error handler. */
#include "common.h"

#include <setjmp.h>

enum { ROOM = 6 };

static jmp_buf back;
static MPI_Comm grid;

OWN_FRAME static void show(const char *when)
{
    int dims[ROOM] = {0}, periods[ROOM] = {0}, coords[ROOM] = {0}, in = 0;
    MPI_Request request;
    MPI_Status status;
    memset(&status, 0, sizeof status);
    MPI_Cart_get(grid, ROOM, dims, periods, coords);
    MPI_Isend(&rank, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    MPI_Recv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, &status);
    if (rank == 0) {
        printf("%s:", when);
        for (int i = 1; i < ROOM; i++)
            printf(" %08x", (unsigned)dims[i]);
        printf(" status %08x %08x\n", (unsigned)status.MPI_SOURCE, (unsigned)status.MPI_TAG);
    }
}

static void leave(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    show("inside");
    longjmp(back, 1);
}

int main(int argc, char **argv)
{
    MPI_Comm failing;
    MPI_Errhandler handler;
    start(&argc, &argv);
    MPI_Cart_create(MPI_COMM_SELF, 1, (int[]){1}, (int[]){0}, 0, &grid);
    show("before");
    MPI_Comm_dup(MPI_COMM_SELF, &failing);
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(failing, handler);
    if (setjmp(back) == 0)
        MPI_Send(&rank, 1, MPI_INT, 99, 0, failing);
    /* It is noticed here that the call was left: this one is no deeper. */
    MPI_Errhandler_free(&handler);
    show("after");
    MPI_Comm_free(&failing);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
