/* At every tenth barrier rank 2 is 5 ms late. Tells how long each of the others waited for it there, by what all have seen
 * on the clock. */
#include "common.h"
#include "spend.h"

#define MOST 1000
#define STEP 1000000
#define LATE 5000000

static int64_t seen[MOST];

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 50;
    if (size != 4 || steps > MOST)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int step = 0; step < steps; step++) {
        spend(rank == 2 && step % 10 == 9 ? STEP + LATE : STEP);
        seen[step] = now();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    int64_t *all = malloc(4 * sizeof seen);
    MPI_Gather(seen, MOST, MPI_INT64_T, all, MOST, MPI_INT64_T, 0, MPI_COMM_WORLD);
    for (int other = 0; rank == 0 && other < 4; other++) {
        int64_t waited = 0;
        for (int step = 0; step < steps; step++) {
            /* For rank 2 only where it was the last. */
            int64_t last = all[2 * MOST + step];
            for (int r = 0; r < 4; r++)
                last = all[r * MOST + step] > last ? 0 : last;
            waited += last > all[other * MOST + step] ? last - all[other * MOST + step] : 0;
        }
        if (other != 2)
            printf("slow_barrier: rank %d waited %lld ns for rank 2\n", other, (long long)waited);
    }
    free(all);
    finish("slow_barrier");
    return 0;
}
