/* Wavefronts over a grid of ranks, from each of its corners in turn, block by block: ranks at corners, at sides and
 * inside are of nine kinds. argv[1]: steps (default 10). */
#include "grid.h"

enum { N = 8, BLOCKS = 3 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10, west[N], north[N], block[N], mine, most;
    struct grid grid = grid_of(2);
    for (int step = 0; step < steps; step++) { /* time step */
        for (int corner = 0; corner < 4; corner++) {
            int right = corner & 1 ? -1 : 1, down = corner & 2 ? -1 : 1, x = grid.at[0], y = grid.at[1];
            int before_x = rank_at(&grid, (int[]){x - right, y}), after_x = rank_at(&grid, (int[]){x + right, y});
            int before_y = rank_at(&grid, (int[]){x, y - down}), after_y = rank_at(&grid, (int[]){x, y + down});
            for (int b = 0; b < BLOCKS; b++) {
                memset(west, 0, sizeof west);
                memset(north, 0, sizeof north);
                if (before_x != MPI_PROC_NULL)
                    MPI_Recv(west, N, MPI_INT, before_x, corner, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                if (before_y != MPI_PROC_NULL)
                    MPI_Recv(north, N, MPI_INT, before_y, corner, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                for (int i = 0; i < N; i++)
                    block[i] = (west[i] * 3 + north[i] * 5 + rank + step + b + i) % 9973;
                if (after_x != MPI_PROC_NULL)
                    MPI_Send(block, N, MPI_INT, after_x, corner, MPI_COMM_WORLD);
                if (after_y != MPI_PROC_NULL)
                    MPI_Send(block, N, MPI_INT, after_y, corner, MPI_COMM_WORLD);
                see(block, N);
            }
        }
        mine = block[0];
        MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        see(&most, 1);
    }
    finish("pipeline2d");
}
