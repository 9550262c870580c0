/* The v and w forms with uneven counts, IN_PLACE, and rooted collectives over an inter-communicator. */
#include "common.h"

static int total(const int *counts)
{
    int sum = 0;
    for (int i = 0; i < size; i++)
        sum += counts[i];
    return sum;
}

static void within(void)
{
    int *counts = malloc(sizeof(int) * size), *places = malloc(sizeof(int) * size);
    int *ones = malloc(sizeof(int) * size), *here = malloc(sizeof(int) * size), *bytes = malloc(sizeof(int) * size);
    MPI_Datatype *types = malloc(sizeof(MPI_Datatype) * size);
    int most = size * (size + 3);
    int *send = malloc(sizeof(int) * most), *receive = calloc(most, sizeof(int));
    for (int i = 0; i < size; i++)
        counts[i] = 1 + i % 3;
    for (int i = 0, at = 0; i < size; i++) {
        places[i] = at;
        at += counts[i];
        ones[i] = counts[rank];
        here[i] = i * counts[rank];
        bytes[i] = here[i] * (int)sizeof(int);
        types[i] = i % 2 ? MPI_INT : MPI_UNSIGNED;
    }
    for (int i = 0; i < most; i++)
        send[i] = rank * 50 + i + 1;

    for (int root = 0; root < size; root += size > 1 ? size - 1 : 1) {
        int mine = rank == root;
        MPI_Gatherv(send, counts[rank], MPI_INT, receive, counts, places, MPI_INT, root, MPI_COMM_WORLD);
        see(receive, mine ? total(counts) : 0);
        MPI_Gatherv(mine ? MPI_IN_PLACE : send, counts[rank], MPI_INT, mine ? receive : NULL, mine ? counts : NULL,
                    mine ? places : NULL, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Scatterv(mine ? receive : NULL, mine ? counts : NULL, mine ? places : NULL, MPI_INT,
                     mine ? MPI_IN_PLACE : send, counts[rank], MPI_INT, root, MPI_COMM_WORLD);
        see(send, counts[rank]);
        MPI_Scatterv(receive, counts, places, MPI_INT, send, counts[rank], MPI_INT, root, MPI_COMM_WORLD);
        see(send, counts[rank]);
    }
    MPI_Allgatherv(send, counts[rank], MPI_INT, receive, counts, places, MPI_INT, MPI_COMM_WORLD);
    see(receive, total(counts));
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, counts, places, MPI_INT, MPI_COMM_WORLD);
    see(receive, total(counts));
    /* Rank r sends counts[i] elements to rank i and receives counts[r] from everybody. */
    MPI_Alltoallv(send, counts, places, MPI_INT, receive, ones, here, MPI_INT, MPI_COMM_WORLD);
    see(receive, size * counts[rank]);
    int *byte_places = malloc(sizeof(int) * size);
    MPI_Datatype *same = malloc(sizeof(MPI_Datatype) * size);
    for (int i = 0; i < size; i++) {
        byte_places[i] = places[i] * (int)sizeof(int);
        same[i] = rank % 2 ? MPI_INT : MPI_UNSIGNED;
    }
    MPI_Alltoallw(send, counts, byte_places, same, receive, ones, bytes, types, MPI_COMM_WORLD);
    see(receive, size * counts[rank]);
    for (int i = 0; i < size; i++) {
        ones[i] = 1;
        here[i] = i;
        byte_places[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, receive, ones, here, MPI_INT, MPI_COMM_WORLD);
    see(receive, size);
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, receive, ones, byte_places, types, MPI_COMM_WORLD);
    see(receive, size);
    free(same);
    free(byte_places);
    free(receive);
    free(send);
    free(types);
    free(bytes);
    free(here);
    free(ones);
    free(places);
    free(counts);
}

/* Even and odd ranks face each other; rank 0 of the even side is the root. */
static void between(void)
{
    MPI_Comm half, inter;
    int side = rank % 2, local, others, sum = 0;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 60, &inter);
    MPI_Comm_rank(inter, &local);
    MPI_Comm_remote_size(inter, &others);
    int root = side ? 0 : local == 0 ? MPI_ROOT : MPI_PROC_NULL;
    int *many = calloc((size_t)size, sizeof(int)), *counts = malloc(sizeof(int) * size);
    int *places = malloc(sizeof(int) * size), mine = 100 + rank;
    for (int i = 0; i < size; i++) {
        counts[i] = 1;
        places[i] = i;
        many[i] = rank + i;
    }
    MPI_Barrier(inter);
    MPI_Bcast(&mine, 1, MPI_INT, root, inter);
    see(&mine, 1);
    MPI_Gather(&mine, 1, MPI_INT, many, 1, MPI_INT, root, inter);
    see(many, others);
    MPI_Scatter(many, 1, MPI_INT, &mine, 1, MPI_INT, root, inter);
    see(&mine, 1);
    MPI_Gatherv(&mine, 1, MPI_INT, many, counts, places, MPI_INT, root, inter);
    see(many, others);
    MPI_Scatterv(many, counts, places, MPI_INT, &mine, 1, MPI_INT, root, inter);
    MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, inter);
    see(&sum, 1);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    see(&sum, 1);
    MPI_Allgather(&mine, 1, MPI_INT, many, 1, MPI_INT, inter);
    see(many, others);
    MPI_Allgatherv(&mine, 1, MPI_INT, many, counts, places, MPI_INT, inter);
    see(many, others);
    MPI_Alltoall(counts, 1, MPI_INT, many, 1, MPI_INT, inter);
    see(many, others);
    MPI_Alltoallv(counts, counts, places, MPI_INT, many, counts, places, MPI_INT, inter);
    MPI_Sendrecv(&rank, 1, MPI_INT, local < others ? local : MPI_PROC_NULL, 61, &mine, 1, MPI_INT,
                 local < others ? local : MPI_PROC_NULL, 61, inter, MPI_STATUS_IGNORE);
    see(&mine, 1);
    free(places);
    free(counts);
    free(many);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    within();
    if (size > 1)
        between();
    finish("vw");
}
