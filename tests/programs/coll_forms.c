/* Every collective in the forms that MPI 4.0 added: large counts, persistent, and both. */
#include "common.h"

enum { MOST = 8, N = 2 };

static int out[MOST * MOST], in[MOST * MOST];
static MPI_Request request;
static MPI_Info info;
/* MPICH 4.0 cannot start a scatter of three or more a second time. */
static int rounds = 2;

static void again(void)
{
    for (int round = 0; round < rounds; round++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        see(in, MOST);
    }
    MPI_Request_free(&request);
}

static void once(void)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    see(in, MOST);
}

#define SMALL(...) __VA_ARGS__
#define LARGE(...) __VA_ARGS__
/* The four new forms of one collective: its arguments with ints, and with MPI_Counts. */
#define FORMS(Name, name, small, large)                                                                             \
    do {                                                                                                            \
        memset(in, 0, sizeof in);                                                                                   \
        MPI_##Name##_c(large);                                                                                      \
        see(in, MOST);                                                                                              \
        MPI_I##name##_c(large, &request);                                                                           \
        once();                                                                                                     \
        MPI_##Name##_init(small, info, &request);                                                                   \
        again();                                                                                                    \
        MPI_##Name##_init_c(large, MPI_INFO_NULL, &request);                                                        \
        again();                                                                                                    \
    } while (0)
/* Where only the types of variables differ, not the text. */
#define SAME(Name, name, ...) FORMS(Name, name, SMALL(__VA_ARGS__), LARGE(__VA_ARGS__))

static void add(void *from, void *to, MPI_Count *count, MPI_Datatype *type)
{
    MPI_Count bytes;
    MPI_Type_size_c(*type, &bytes);
    for (MPI_Count i = 0; i < *count; i++)
        ((int *)to)[i] += ((int *)from)[i] + (int)bytes - 4;
}

static void whole(MPI_Comm comm)
{
    int counts[MOST], displs[MOST], bytes[MOST];
    MPI_Count counts_c[MOST];
    MPI_Aint displs_c[MOST], bytes_c[MOST];
    MPI_Datatype types[MOST];
    for (int i = 0; i < MOST; i++) {
        counts_c[i] = counts[i] = N;
        displs_c[i] = displs[i] = N * i;
        bytes_c[i] = bytes[i] = N * i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    int root = size - 1;
    SAME(Bcast, bcast, in, N, MPI_INT, root, comm);
    SAME(Gather, gather, out, N, MPI_INT, in, N, MPI_INT, root, comm);
    rounds = 1;
    SAME(Scatter, scatter, out, N, MPI_INT, in, N, MPI_INT, root, comm);
    rounds = 2;
    SAME(Allgather, allgather, out, N, MPI_INT, in, N, MPI_INT, comm);
    SAME(Allgather, allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, N, MPI_INT, comm);
    SAME(Alltoall, alltoall, out, N, MPI_INT, in, N, MPI_INT, comm);
    SAME(Reduce, reduce, out, in, N, MPI_INT, MPI_MAX, root, comm);
    SAME(Allreduce, allreduce, out, in, N, MPI_INT, MPI_SUM, comm);
    SAME(Scan, scan, out, in, N, MPI_INT, MPI_SUM, comm);
    SAME(Exscan, exscan, out, in, N, MPI_INT, MPI_SUM, comm);
    SAME(Reduce_scatter_block, reduce_scatter_block, out, in, N, MPI_INT, MPI_SUM, comm);
    FORMS(Reduce_scatter, reduce_scatter, SMALL(out, in, counts, MPI_INT, MPI_SUM, comm),
          LARGE(out, in, counts_c, MPI_INT, MPI_SUM, comm));
    FORMS(Gatherv, gatherv, SMALL(out, N, MPI_INT, in, counts, displs, MPI_INT, root, comm),
          LARGE(out, N, MPI_INT, in, counts_c, displs_c, MPI_INT, root, comm));
    FORMS(Scatterv, scatterv, SMALL(out, counts, displs, MPI_INT, in, N, MPI_INT, root, comm),
          LARGE(out, counts_c, displs_c, MPI_INT, in, N, MPI_INT, root, comm));
    FORMS(Allgatherv, allgatherv, SMALL(out, N, MPI_INT, in, counts, displs, MPI_INT, comm),
          LARGE(out, N, MPI_INT, in, counts_c, displs_c, MPI_INT, comm));
    FORMS(Alltoallv, alltoallv, SMALL(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, comm),
          LARGE(out, counts_c, displs_c, MPI_INT, in, counts_c, displs_c, MPI_INT, comm));
    FORMS(Alltoallw, alltoallw, SMALL(out, counts, bytes, types, in, counts, bytes, types, comm),
          LARGE(out, counts_c, bytes_c, types, in, counts_c, bytes_c, types, comm));
    MPI_Barrier_init(comm, info, &request);
    again();
}

static void neighbours(MPI_Comm ring)
{
    int counts[2] = {N, 1}, displs[2] = {0, N}, receive[2] = {1, N};
    MPI_Count counts_c[2] = {N, 1}, receive_c[2] = {1, N}, even_c[2] = {N, N};
    MPI_Aint displs_c[2] = {0, N}, bytes[2] = {0, N * sizeof(int)};
    int even[2] = {N, N};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    SAME(Neighbor_allgather, neighbor_allgather, out, N, MPI_INT, in, N, MPI_INT, ring);
    SAME(Neighbor_alltoall, neighbor_alltoall, out, N, MPI_INT, in, N, MPI_INT, ring);
    FORMS(Neighbor_allgatherv, neighbor_allgatherv, SMALL(out, N, MPI_INT, in, even, displs, MPI_INT, ring),
          LARGE(out, N, MPI_INT, in, even_c, displs_c, MPI_INT, ring));
    FORMS(Neighbor_alltoallv, neighbor_alltoallv,
          SMALL(out, counts, displs, MPI_INT, in, receive, displs, MPI_INT, ring),
          LARGE(out, counts_c, displs_c, MPI_INT, in, receive_c, displs_c, MPI_INT, ring));
    FORMS(Neighbor_alltoallw, neighbor_alltoallw,
          SMALL(out, counts, bytes, types, in, receive, bytes, types, ring),
          LARGE(out, counts_c, bytes, types, in, receive_c, bytes, types, ring));
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int i = 0; i < MOST * MOST; i++)
        out[i] = rank * 1000 + i;
    MPI_Info_create(&info);
    whole(MPI_COMM_WORLD);
    MPI_Comm ring;
    int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    neighbours(ring);
    MPI_Comm_free(&ring);

    MPI_Op adding;
    MPI_Op_create_c(add, 1, &adding);
    MPI_Reduce_local_c(out, in, N, MPI_INT, adding);
    MPI_Allreduce_c(out, in, N, MPI_INT, adding, MPI_COMM_WORLD);
    see(in, N);
    MPI_Op_free(&adding);
    MPI_Info_free(&info);
    finish("coll_forms");
    return 0;
}
