/* Completion in the program's own order: Waitany, Waitsome, Testany, Testsome, Testall, over many requests at once,
 * with null and shared handles among them. argv[1]: rounds (default 3). */
#include "common.h"

enum { MOST = 64 };
static int in[MOST][4], out[MOST][4];
static MPI_Request requests[2 * MOST];

/* Everybody exchanges with everybody; entry 2i receives from i, 2i+1 sends to i. Rank itself: PROC_NULL. */
static int post(int tag)
{
    for (int i = 0; i < size; i++) {
        int peer = i == rank ? MPI_PROC_NULL : i;
        for (int k = 0; k < 4; k++) {
            in[i][k] = 0;
            out[i][k] = rank * 1000 + i * 10 + k;
        }
        MPI_Irecv(in[i], 4, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(out[i], 1 + (rank + i) % 4, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    return 2 * size;
}

static void seen(void)
{
    for (int i = 0; i < size; i++)
        see(in[i], 4);
}

int main(int argc, char **argv)
{
    MPI_Status status, statuses[2 * MOST];
    int indices[2 * MOST], index, done, flag, n;
    memset(statuses, 0, sizeof statuses);
    memset(&status, 0, sizeof status);
    start(&argc, &argv);
    if (size > MOST)
        MPI_Abort(MPI_COMM_WORLD, 1);
    int rounds = argc > 1 ? atoi(argv[1]) : 3;

    for (int round = 0; round < rounds; round++) {
        n = post(40);
        do
            MPI_Waitany(n, requests, &index, &status);
        while (index != MPI_UNDEFINED);
        seen();

        n = post(41);
        for (done = 0; done != MPI_UNDEFINED;)
            MPI_Waitsome(n, requests, &done, indices, statuses);
        seen();

        n = post(42);
        for (int left = n; left > 0;) {
            MPI_Testany(n, requests, &index, &flag, &status);
            if (flag && index != MPI_UNDEFINED)
                left--;
        }
        MPI_Testany(n, requests, &index, &flag, &status);
        seen();

        n = post(43);
        for (int left = n; left > 0; left -= done)
            MPI_Testsome(n, requests, &done, indices, round % 2 ? MPI_STATUSES_IGNORE : statuses);
        MPI_Testsome(n, requests, &done, indices, statuses);
        seen();

        n = post(44);
        for (flag = 0; !flag;)
            MPI_Testall(n, requests, &flag, round % 2 ? MPI_STATUSES_IGNORE : statuses);
        seen();

        n = post(45);
        for (int i = n; i-- > 0;)
            for (flag = 0; !flag;)
                MPI_Test(&requests[i], &flag, &status);
        seen();
    }
    MPI_Waitall(0, requests, MPI_STATUSES_IGNORE);
    finish("completion");
}
