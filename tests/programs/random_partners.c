/* Messages of random sizes to random ranks: some met by receives from anybody and Waitany, some by polling with Iprobe;
 * the sends are given up to Testsome. What arrives in which order is left to chance, the result is not.
 * argv[1]: steps (default 10). */
#include "common.h"

enum { MESSAGES = 4, MOST = 200 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    int room = MESSAGES * size;
    int *in = calloc((size_t)room * MOST, sizeof *in), out[MOST];
    MPI_Request *receives = calloc((size_t)room, sizeof *receives), sends[MESSAGES];
    for (int i = 0; i < MOST; i++)
        out[i] = rank + 3 * i;
    for (int step = 0; step < steps; step++) {
        MPI_Status status, statuses[MESSAGES];
        int expected = 0, done, index, flag, count, indices[MESSAGES];
        long sum = 0, all;
        memset(statuses, 0, sizeof statuses);
        memset(&status, 0, sizeof status);
        for (int from = 0; from < size; from++)
            for (int m = 0; m < MESSAGES; m++)
                expected += drawn(size, step, from, m) == rank;
        int posted = expected / 2;
        for (int i = 0; i < posted; i++)
            MPI_Irecv(in + i * MOST, MOST, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &receives[i]);
        for (int m = 0; m < MESSAGES; m++)
            MPI_Isend(out, 1 + drawn(MOST, step, rank, m + 100), MPI_INT, drawn(size, step, rank, m), 5,
                      MPI_COMM_WORLD, &sends[m]);
        for (int got = posted; got < expected; got++) {
            for (flag = 0; !flag;)
                MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            MPI_Recv(in + got * MOST, count, MPI_INT, status.MPI_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sum += in[got * MOST + count - 1];
        }
        for (int i = 0; i < posted; i++) {
            MPI_Waitany(posted, receives, &index, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            sum += in[index * MOST + count - 1];
        }
        for (int left = MESSAGES; left > 0; left -= done)
            MPI_Testsome(MESSAGES, sends, &done, indices, statuses);
        /* Also keeps the steps apart, so that one tag does for all. */
        MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        checksum = (checksum * 31 + all) % 1000003;
    }
    free(receives);
    free(in);
    finish("random_partners");
}
