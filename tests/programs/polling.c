/* Rank 0 asks again and again whether somebody has sent something; the others send, with a pause that makes it ask in
 * vain. argv[1]: messages of each (default 10). */
#include "common.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int messages = argc > 1 ? atoi(argv[1]) : 10;
    if (rank == 0) {
        int left = messages * (size - 1);
        long values = 0;
        while (left > 0) { /* asks */
            int flag, value;
            MPI_Status status;
            MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, &status);
            if (flag) {
                MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                values += value;
                left--;
            }
        }
        checksum = values;
    } else {
        for (int message = 0; message < messages; message++) { /* sends */
            usleep(1000);
            MPI_Send(&message, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        }
    }
    finish("polling");
}
