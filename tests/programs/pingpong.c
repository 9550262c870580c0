/* Rank 0 sends a number to each other rank and has it back, again and again, with a pause in between: for so many
 * milliseconds (200 if none are named). No message is under way when the next is sent. */
#include "common.h"
#include <time.h>

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int milliseconds = argc > 1 ? atoi(argv[1]) : 200;
    struct timespec pause = {0, 1000 * 1000};
    for (int turn = 0; turn < milliseconds; turn++) {
        int number = turn;
        for (int other = 1; other < size; other++) {
            if (rank == 0) {
                MPI_Send(&number, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
                MPI_Recv(&number, 1, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                see(&number, 1);
            } else if (rank == other) {
                MPI_Recv(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                number++;
                MPI_Send(&number, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
            }
        }
        nanosleep(&pause, NULL);
    }
    finish("pingpong");
    return 0;
}
