/* NPB EP: each rank draws its random numbers; three sums at the end are all that is told. ScalaTrace figure 10.
 * Ranks: any. Has no steps. */
#include "papers.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Class A: 26.68e9 operations for 2^28 pairs. */
    compute((double)(1 << 28) / size, 26.68e9 / (1 << 28));
    sum_all(1);
    sum_all(1);
    sum_all(10);
    sum_at_root(1);
    finish();
}
