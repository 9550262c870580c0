/* Every step ends with a loop that runs another number of times, so where a step ends is only known when the next one
 * has begun. argv[1]: steps (default 10); argv[2]: "drawn" for random numbers of times, otherwise 1 to 4 in turn. */
#include "common.h"

enum { N = 20 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, random = argc > 2 && strcmp(argv[2], "drawn") == 0;
    int left = (rank + size - 1) % size, right = (rank + 1) % size, out[N], in[N];
    for (int step = 0; step < steps; step++) { /* time step */
        int times = 1 + (random ? drawn(6, step, 0, 0) : step % 4), mine = rank + step, most;
        MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        see(&most, 1);
        MPI_Bcast(&most, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
        for (int cell = 0; cell < times; cell++) {
            MPI_Request requests[2];
            for (int i = 0; i < N; i++)
                out[i] = most + cell * 11 + i;
            MPI_Isend(out, N, MPI_INT, right, 31, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(in, N, MPI_INT, left, 31, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            see(in, N);
        }
    }
    finish("trailing");
}
