/* Rank 3 sends 10 ms late, again and again, and rank 2 waits for it. Nobody else waits for anybody. Tells how long rank 2
 * waited, by what both have seen on the clock. */
#include "common.h"
#include "spend.h"

#define MOST 1000
#define LATE 10000000

static int64_t seen[MOST];

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    if (size != 4 || steps > MOST)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        int value = step;
        if (rank != 2)
            spend(LATE);
        seen[step] = now();
        if (rank == 3) {
            MPI_Send(&value, 1, MPI_INT, 2, 5, MPI_COMM_WORLD);
        } else if (rank == 2) {
            MPI_Recv(&value, 1, MPI_INT, 3, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            see(&value, 1);
        }
    }
    int64_t *all = malloc(4 * sizeof seen);
    MPI_Gather(seen, MOST, MPI_INT64_T, all, MOST, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        int64_t waited = 0;
        for (int step = 0; step < steps; step++) {
            int64_t wait = all[3 * MOST + step] - all[2 * MOST + step];
            waited += wait > 0 ? wait : 0;
        }
        printf("late_sender: rank 2 waited %lld ns for rank 3\n", (long long)waited);
    }
    free(all);
    finish("late_sender");
    return 0;
}
