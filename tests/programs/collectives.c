/* All blocking collectives of one count and type, from every root. */
#include "common.h"

static void first_of_pair(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)inout;
    (void)type;
    (void)n;
    (void)in;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int n = 3;
    int *one = malloc(sizeof(int) * n), *many = malloc(sizeof(int) * n * size), *other = malloc(sizeof(int) * n * size);
    int *counts = malloc(sizeof(int) * size);
    for (int i = 0; i < size; i++)
        counts[i] = 1 + i % 2;

    for (int root = 0; root < size; root++) {
        for (int i = 0; i < n; i++)
            one[i] = rank * 10 + i + root;
        for (int i = 0; i < n * size; i++)
            many[i] = rank * 100 + i;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Bcast(one, n, MPI_INT, root, MPI_COMM_WORLD);
        see(one, n);
        MPI_Gather(one, n, MPI_INT, many, n, MPI_INT, root, MPI_COMM_WORLD);
        see(many, n * size);
        MPI_Scatter(many, n, MPI_INT, one, n, MPI_INT, root, MPI_COMM_WORLD);
        see(one, n);
        MPI_Reduce(one, other, n, MPI_INT, root % 2 ? MPI_SUM : MPI_MAX, root, MPI_COMM_WORLD);
        if (rank == root)
            see(other, n);
        MPI_Reduce(rank == root ? MPI_IN_PLACE : one, rank == root ? one : NULL, n, MPI_INT, MPI_BXOR, root,
                   MPI_COMM_WORLD);
        MPI_Gather(rank == root ? MPI_IN_PLACE : one, n, MPI_INT, many, n, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Scatter(many, n, MPI_INT, rank == root ? MPI_IN_PLACE : one, n, MPI_INT, root, MPI_COMM_WORLD);
        see(one, n);
    }

    MPI_Allgather(one, n, MPI_INT, many, n, MPI_INT, MPI_COMM_WORLD);
    see(many, n * size);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, many, n, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(many, n, MPI_INT, other, n, MPI_INT, MPI_COMM_WORLD);
    see(other, n * size);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, other, n, MPI_INT, MPI_COMM_WORLD);
    see(other, n * size);
    MPI_Allreduce(one, other, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    see(other, n);
    MPI_Allreduce(MPI_IN_PLACE, one, n, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    see(one, n);
    MPI_Reduce_scatter(many, one, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    see(one, counts[rank]);
    MPI_Reduce_scatter_block(many, one, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    see(one, n);
    MPI_Scan(one, other, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    see(other, n);
    MPI_Exscan(one, other, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank > 0)
        see(other, n);
    MPI_Scan(MPI_IN_PLACE, one, n, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    see(one, n);
    MPI_Reduce_local(one, other, n, MPI_INT, MPI_MAX);

    double x[2] = {rank * 0.5, 1.0}, y[2];
    struct {
        double value;
        int where;
    } pair = {1.0 / (1 + (rank + 1) % size), rank}, best;
    MPI_Allreduce(x, y, 2, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD);
    MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    see(&best.where, 1);
    int truth = rank % 2, every;
    MPI_Allreduce(&truth, &every, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    MPI_Allreduce(&truth, &every, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    see(&every, 1);

    MPI_Op op;
    MPI_Op_create(first_of_pair, 1, &op);
    MPI_Allreduce(&rank, &every, 1, MPI_INT, op, MPI_COMM_SELF);
    MPI_Op_free(&op);

    free(counts);
    free(other);
    free(many);
    free(one);
    finish("collectives");
}
