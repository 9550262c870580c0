/* Communicators of every origin, each used for traffic; frees and re-creations. argv[1]: rounds (default 2). */
#include "common.h"

/* Something on a communicator that every member does: a ring and a sum. */
static void traffic(MPI_Comm comm)
{
    int me, all, token, sum, inter;
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_test_inter(comm, &inter);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    if (!inter) {
        MPI_Sendrecv(&rank, 1, MPI_INT, (me + 1) % all, 70, &token, 1, MPI_INT, (me + all - 1) % all, 70, comm,
                     MPI_STATUS_IGNORE);
        see(&token, 1);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    see(&sum, 1);
}

static void splits(void)
{
    MPI_Comm colour, part, shared, copy, again, later[2];
    MPI_Request requests[2];
    int result, length;
    char name[MPI_MAX_OBJECT_NAME];

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &colour);
    traffic(colour);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 5, rank, &part);
    traffic(part);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
    traffic(shared);
    MPI_Comm_dup(colour, &copy);
    traffic(copy);
    MPI_Comm_split(copy, 0, 0, &again);
    traffic(again);
    MPI_Comm_compare(colour, copy, &result);
    see(&result, 0);
    MPI_Comm_compare(MPI_COMM_WORLD, colour, &result);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
    MPI_Comm_set_name(copy, "a \"copy\" of a colour");
    MPI_Comm_get_name(copy, name, &length);
    see(&length, 1);
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);

    MPI_Comm_idup(MPI_COMM_WORLD, &later[0], &requests[0]);
    MPI_Comm_idup(colour, &later[1], &requests[1]);
    traffic(copy);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    traffic(later[0]);
    traffic(later[1]);
    MPI_Comm_free(&later[1]);
    MPI_Comm_free(&later[0]);

    MPI_Comm_free(&copy);
    if (part != MPI_COMM_NULL)
        MPI_Comm_free(&part);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    traffic(copy);
    traffic(again);
    MPI_Comm_free(&again);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&shared);
    MPI_Comm_free(&colour);
}

static void groups(void)
{
    MPI_Group world, same, even, odd, both, range, rest, none, common;
    MPI_Comm comm;
    int ranks[64], where[64], n = 0, value, result;
    for (int i = 0; i < size && n < 64; i += 2)
        ranks[n++] = i;
    int span[1][3] = {{0, size - 1, 2}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(MPI_COMM_WORLD, &same);
    MPI_Group_incl(world, n, ranks, &even);
    MPI_Group_excl(world, n, ranks, &odd);
    MPI_Group_range_incl(world, 1, span, &range);
    MPI_Group_range_excl(world, 1, span, &rest);
    MPI_Group_compare(rest, odd, &result);
    MPI_Group_union(odd, even, &both);
    MPI_Group_intersection(odd, even, &none);
    MPI_Group_difference(world, odd, &common);
    MPI_Group_compare(even, range, &result);
    MPI_Group_compare(both, world, &result);
    MPI_Group_size(both, &value);
    see(&value, 1);
    MPI_Group_rank(even, &value);
    for (int i = 0; i < n; i++)
        ranks[i] = i;
    MPI_Group_translate_ranks(even, n, ranks, world, where);
    see(where, n);
    MPI_Group_translate_ranks(even, n, ranks, odd, where);

    MPI_Comm_create(MPI_COMM_WORLD, even, &comm);
    traffic(comm);
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
    /* Only the members call this one; each side makes its own. */
    for (int round = 0; round < 2; round++) {
        MPI_Comm_create_group(MPI_COMM_WORLD, rank % 2 ? odd : even, 71, &comm);
        traffic(comm);
        MPI_Comm_free(&comm);
    }
    if (none != MPI_GROUP_EMPTY)
        MPI_Group_free(&none);
    MPI_Group_free(&common);
    MPI_Group_free(&both);
    MPI_Group_free(&range);
    if (rest != MPI_GROUP_EMPTY)
        MPI_Group_free(&rest);
    if (odd != MPI_GROUP_EMPTY)
        MPI_Group_free(&odd);
    MPI_Group_free(&even);
    MPI_Group_free(&same);
    MPI_Group_free(&world);
}

static void cartesian(void)
{
    MPI_Comm grid, row;
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], wraps[2], shape[2], keep[2] = {0, 1};
    int up, down, left, right, kind, n, me, in[4] = {0}, out[4] = {rank, rank + 1, rank + 2, rank + 3};
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Topo_test(grid, &kind);
    MPI_Topo_test(MPI_COMM_WORLD, &kind);
    MPI_Cartdim_get(grid, &n);
    MPI_Comm_rank(grid, &me);
    MPI_Cart_coords(grid, me, 2, coords);
    MPI_Cart_rank(grid, coords, &me);
    MPI_Cart_get(grid, 2, shape, wraps, coords);
    see(coords, 2);
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Sendrecv(out, 1, MPI_INT, down, 72, in, 1, MPI_INT, up, 72, grid, MPI_STATUS_IGNORE);
    see(in, 1);
    MPI_Sendrecv(out, 1, MPI_INT, right, 73, in, 1, MPI_INT, left, 73, grid, MPI_STATUS_IGNORE);
    see(in, 1);
    MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, grid);
    see(in, 4);
    MPI_Cart_sub(grid, keep, &row);
    traffic(row);
    MPI_Comm_free(&row);
    MPI_Comm_free(&grid);
}

static void graphs(void)
{
    MPI_Comm ring, fan, weighted;
    int *index = malloc(sizeof(int) * size), *edges = malloc(sizeof(int) * 2 * size);
    int nodes, count, n, near[2], in[4] = {0}, out[4], counts[2] = {1, 2}, places[2] = {0, 1}, outs, any;
    MPI_Aint bytes[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Request request;
    for (int i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
    }
    for (int i = 0; i < 4; i++)
        out[i] = rank * 4 + i;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &ring);
    MPI_Graphdims_get(ring, &nodes, &count);
    MPI_Graph_get(ring, nodes, count, index, edges);
    MPI_Graph_neighbors_count(ring, rank, &n);
    MPI_Graph_neighbors(ring, rank, n, near);
    see(near, 2);
    traffic(ring);
    MPI_Comm_free(&ring);

    /* Everybody hears from the two before it and tells the two after it. */
    int from[2] = {(rank + size - 1) % size, (rank + 2 * size - 2) % size};
    int to[2] = {(rank + 1) % size, (rank + 2) % size};
    int weights[2] = {3, 4}, got[2], gave[2], got_weight[2], gave_weight[2];
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &fan);
    MPI_Dist_graph_neighbors_count(fan, &n, &outs, &any);
    MPI_Dist_graph_neighbors(fan, 2, got, MPI_UNWEIGHTED, 2, gave, MPI_UNWEIGHTED);
    see(got, 2);
    MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, fan);
    see(in, 2);
    MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, (int[]){1, 1}, (int[]){1, 0}, MPI_INT, fan);
    see(in, 2);
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, fan);
    see(in, 2);
    MPI_Neighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, fan);
    MPI_Neighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types, fan);
    MPI_Ineighbor_allgather(out, 2, MPI_INT, in, 2, MPI_INT, fan, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    see(in, 4);
    MPI_Ineighbor_allgatherv(out, 1, MPI_INT, in, (int[]){1, 1}, (int[]){0, 1}, MPI_INT, fan, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, fan, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ineighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, fan, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ineighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types, fan, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&fan);

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, weights, 2, to, weights, MPI_INFO_NULL, 0, &weighted);
    MPI_Dist_graph_neighbors(weighted, 2, got, got_weight, 2, gave, gave_weight);
    see(got_weight, 2);
    MPI_Comm_free(&weighted);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, (int[]){1}, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &weighted);
    traffic(weighted);
    MPI_Comm_free(&weighted);
    free(edges);
    free(index);
}

static void between(void)
{
    MPI_Comm half, inter, copy, merged;
    MPI_Group group;
    int side = rank % 2, flag, others;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 74, &inter);
    MPI_Comm_test_inter(inter, &flag);
    MPI_Comm_remote_size(inter, &others);
    see(&others, 1);
    MPI_Comm_remote_group(inter, &group);
    MPI_Group_free(&group);
    traffic(inter);
    MPI_Comm_dup(inter, &copy);
    traffic(copy);
    MPI_Intercomm_merge(inter, side, &merged);
    traffic(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 2;
    for (int round = 0; round < rounds; round++) {
        splits();
        groups();
        cartesian();
        graphs();
        if (size > 1)
            between();
    }
    finish("comms");
}
