/* MPI_Alltoallv and its kin, with counts that change from step to step: on the world and on rows of it, on communicators
 * that live for one step, in place, with other datatypes on one rank, non-blocking, with neighbours, and (MPI 4)
 * persistent and with large counts. Whole messages are sums of pairs of ints, so that both datatypes fit.
 * argv[1]: steps (default 6); argv[2]: the step in which rank 1 dies (default none). */
#include "common.h"

#include <signal.h>

enum { MOST = 40 };

static int *out, *in, *place;

/* How many pairs of ints `from` sends to `to`. */
static int pairs(int step, int from, int to)
{
    return drawn(MOST, step, from, to) * ((from + to + step) % 3 != 0);
}

/* The counts of this rank among `n` ones whose world ranks are first, first + 1, ..., times `each`. */
static void fill(int step, int n, int first, int *counts, int *displacements, int sends, int each)
{
    for (int i = 0, at = 0; i < n; i++) {
        counts[i] = each * (sends ? pairs(step, rank, first + i) : pairs(step, first + i, rank));
        displacements[i] = at;
        at += counts[i];
    }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 6, last = argc > 2 ? atoi(argv[2]) : -1;
    size_t n = (size_t)size;
    int *sent = calloc(4 * n, sizeof *sent), *received = sent + n, *from = sent + 2 * n, *to = sent + 3 * n;
    out = calloc(2 * MOST * n, sizeof *out);
    in = calloc(2 * MOST * n, sizeof *in);
    place = calloc(2 * MOST * n, sizeof *place);
    for (size_t i = 0; i < 2 * MOST * n; i++)
        out[i] = place[i] = rank + (int)i;
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Comm row, ring;
    /* Rows of two, and one of the rest. */
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
    int row_size, periodic = 1, first = rank / 2 * 2;
    MPI_Comm_size(row, &row_size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    for (int step = 0; step < steps; step++) { /* time step */
        if (step == last && rank == 1)
            raise(SIGKILL);
        /* One rank sends pairs, all others ints. */
        fill(step, size, 0, sent, from, 1, rank == 0 ? 1 : 2);
        fill(step, size, 0, received, to, 0, 2);
        MPI_Alltoallv(out, sent, from, rank == 0 ? pair : MPI_INT, in, received, to, MPI_INT, MPI_COMM_WORLD);

        fill(step + 1, row_size, first, sent, from, 1, 2);
        fill(step + 1, row_size, first, received, to, 0, 2);
        MPI_Alltoallv(out, sent, from, MPI_INT, in, received, to, MPI_INT, row);

        MPI_Comm own;
        MPI_Comm_dup(MPI_COMM_WORLD, &own);
        fill(step + 2, size, 0, sent, from, 1, 2);
        fill(step + 2, size, 0, received, to, 0, 2);
        MPI_Request request;
        MPI_Ialltoallv(out, sent, from, MPI_INT, in, received, to, MPI_INT, own, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&own);

        /* In place what goes one way comes back. */
        for (int i = 0, at = 0; i < size; i++) {
            received[i] = drawn(MOST, step, rank < i ? rank : i, rank < i ? i : rank);
            to[i] = at;
            at += received[i];
        }
        MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, place, received, to, MPI_INT, MPI_COMM_WORLD);

        int left = (rank + size - 1) % size, right = (rank + 1) % size;
        int there[2] = {pairs(step, rank, left), pairs(step, rank, right)};
        int back[2] = {pairs(step, left, rank), pairs(step, right, rank)};
        if (size == 2) { /* Both neighbours are one: what goes left there comes from the right here. */
            there[1] = there[0];
            back[1] = back[0];
        }
        int at_there[2] = {0, there[0]}, at_back[2] = {0, back[0]};
        MPI_Neighbor_alltoallv(out, there, at_there, MPI_INT, in, back, at_back, MPI_INT, ring);
#if MPI_VERSION >= 4
        MPI_Count wide[64], wide_back[64];
        MPI_Aint at[64], at_wide_back[64];
        fill(step + 3, size, 0, sent, from, 1, 2);
        fill(step + 3, size, 0, received, to, 0, 2);
        for (int i = 0; i < size; i++) {
            wide[i] = sent[i];
            wide_back[i] = received[i];
            at[i] = from[i];
            at_wide_back[i] = to[i];
        }
        MPI_Alltoallv_c(out, wide, at, MPI_INT, in, wide_back, at_wide_back, MPI_INT, MPI_COMM_WORLD);
        MPI_Alltoallv_init(out, sent, from, MPI_INT, in, received, to, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
#endif
        see(in, 2 * MOST);
    }
    MPI_Comm_free(&ring);
    MPI_Comm_free(&row);
    MPI_Type_free(&pair);
    free(place);
    free(in);
    free(out);
    free(sent);
    finish("alltoallv_kin");
}
