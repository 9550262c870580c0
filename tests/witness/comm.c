/* Communicators, groups and topologies. */
#include "witness.h"

#include <string.h>

static int sum(const int *numbers, int n)
{
    int total = 0;
    for (int i = 0; i < n; i++)
        total += numbers[i];
    return total;
}

W(Comm_rank, (MPI_Comm comm, int *rank),
  (comm, rank),
  COMM(comm),
  OUT_PEER(rank))

W(Comm_size, (MPI_Comm comm, int *size),
  (comm, size),
  COMM(comm),
  OUT_INT(size))

W(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm),
  (comm, color, key, newcomm),
  COMM(comm) UNDEFINABLE(color) INT(key),
  NEW_COMM(newcomm))

W(Comm_split_type, (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm),
  (comm, split_type, key, info, newcomm),
  COMM(comm) ENUM(split_type, SPLIT_TYPES) INT(key) INFO(info),
  NEW_COMM(newcomm))

W(Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm),
  (comm, newcomm),
  COMM(comm),
  NEW_COMM(newcomm))

W(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm),
  (comm, info, newcomm),
  COMM(comm) INFO(info),
  NEW_COMM(newcomm))

W(Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request),
  (comm, newcomm, request),
  COMM(comm),
  NEW_COMM_LATER(newcomm) NEW_REQ(request))

W(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm),
  (comm, group, newcomm),
  COMM(comm) GROUP(group),
  NEW_COMM(newcomm))

W(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm),
  (comm, group, tag, newcomm),
  COMM(comm) GROUP(group) TAG(tag),
  NEW_COMM(newcomm))

W(Comm_free, (MPI_Comm *comm),
  (comm),
  MPI_Comm old = *comm; COMM_AT(comm),
  FREED(COMM, old))

W(Comm_compare, (MPI_Comm comm1, MPI_Comm comm2, int *result),
  (comm1, comm2, result),
  COMM(comm1) COMM(comm2),
  OUT_ENUM(result, COMPARISONS))

W(Comm_group, (MPI_Comm comm, MPI_Group *group),
  (comm, group),
  COMM(comm),
  NEW_GROUP(group))

W(Comm_remote_group, (MPI_Comm comm, MPI_Group *group),
  (comm, group),
  COMM(comm),
  NEW_GROUP(group))

W(Comm_remote_size, (MPI_Comm comm, int *size),
  (comm, size),
  COMM(comm),
  OUT_INT(size))

W(Comm_test_inter, (MPI_Comm comm, int *flag),
  (comm, flag),
  COMM(comm),
  OUT_BOOL(flag))

W(Comm_get_name, (MPI_Comm comm, char *comm_name, int *resultlen),
  (comm, comm_name, resultlen),
  COMM(comm),
  OUT_STRING(comm_name) OUT_INT(resultlen))

W(Comm_set_name, (MPI_Comm comm, const char *comm_name),
  (comm, comm_name),
  COMM(comm) STRING(comm_name),
  )

W(Intercomm_create, (MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
 MPI_Comm *newintercomm),
  (local_comm, local_leader, peer_comm, remote_leader, tag, newintercomm),
  COMM(local_comm) PEER(local_leader) TAG(tag) IF(at_root(local_leader, local_comm)) COMM(peer_comm)
   PEER(remote_leader) ALWAYS,
  NEW_COMM(newintercomm))

W(Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm *newintracomm),
  (intercomm, high, newintracomm),
  COMM(intercomm) BOOL(high),
  NEW_COMM(newintracomm))

W(Group_incl, (MPI_Group group, int n, const int ranks[], MPI_Group *newgroup),
  (group, n, ranks, newgroup),
  GROUP(group) INT(n) PEERS(ranks, n),
  NEW_GROUP(newgroup))

W(Group_excl, (MPI_Group group, int n, const int ranks[], MPI_Group *newgroup),
  (group, n, ranks, newgroup),
  GROUP(group) INT(n) PEERS(ranks, n),
  NEW_GROUP(newgroup))

W(Group_union, (MPI_Group group1, MPI_Group group2, MPI_Group *newgroup),
  (group1, group2, newgroup),
  GROUP(group1) GROUP(group2),
  NEW_GROUP(newgroup))

W(Group_intersection, (MPI_Group group1, MPI_Group group2, MPI_Group *newgroup),
  (group1, group2, newgroup),
  GROUP(group1) GROUP(group2),
  NEW_GROUP(newgroup))

W(Group_difference, (MPI_Group group1, MPI_Group group2, MPI_Group *newgroup),
  (group1, group2, newgroup),
  GROUP(group1) GROUP(group2),
  NEW_GROUP(newgroup))

W(Group_range_incl, (MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup),
  (group, n, ranges, newgroup),
  GROUP(group) INT(n) SLOT(ranges, LIST(i, 3 * n, put_int(ranges[i / 3][i % 3]))),
  NEW_GROUP(newgroup))

W(Group_range_excl, (MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup),
  (group, n, ranges, newgroup),
  GROUP(group) INT(n) SLOT(ranges, LIST(i, 3 * n, put_int(ranges[i / 3][i % 3]))),
  NEW_GROUP(newgroup))

W(Group_translate_ranks, (MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]),
  (group1, n, ranks1, group2, ranks2),
  GROUP(group1) INT(n) PEERS(ranks1, n) GROUP(group2),
  OUT_PEERS(ranks2, n))

W(Group_free, (MPI_Group *group),
  (group),
  MPI_Group old = *group; GROUP_AT(group),
  FREED(GROUP, old))

W(Group_size, (MPI_Group group, int *size),
  (group, size),
  GROUP(group),
  OUT_INT(size))

W(Group_rank, (MPI_Group group, int *rank),
  (group, rank),
  GROUP(group),
  OUT_PEER(rank))

W(Group_compare, (MPI_Group group1, MPI_Group group2, int *result),
  (group1, group2, result),
  GROUP(group1) GROUP(group2),
  OUT_ENUM(result, COMPARISONS))

W(Cart_create, (MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder,
 MPI_Comm *comm_cart),
  (comm_old, ndims, dims, periods, reorder, comm_cart),
  COMM(comm_old) INT(ndims) INTS(dims, ndims) BOOLS(periods, ndims) BOOL(reorder),
  NEW_COMM(comm_cart))

W(Cart_coords, (MPI_Comm comm, int rank, int maxdims, int coords[]),
  (comm, rank, maxdims, coords),
  COMM(comm) PEER(rank) INT(maxdims),
  OUT_INTS(coords, of_cart(comm, maxdims)))

W(Cart_rank, (MPI_Comm comm, const int coords[], int *rank),
  (comm, coords, rank),
  COMM(comm) INTS(coords, cart_dims(comm)),
  OUT_PEER(rank))

W(Cart_shift, (MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest),
  (comm, direction, disp, rank_source, rank_dest),
  COMM(comm) INT(direction) INT(disp),
  OUT_PEER(rank_source) OUT_PEER(rank_dest))

W(Cart_sub, (MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm),
  (comm, remain_dims, newcomm),
  COMM(comm) BOOLS(remain_dims, cart_dims(comm)),
  NEW_COMM(newcomm))

W(Cart_get, (MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]),
  (comm, maxdims, dims, periods, coords),
  COMM(comm) INT(maxdims),
  OUT_INTS(dims, of_cart(comm, maxdims)) OUT_BOOLS(periods, of_cart(comm, maxdims)) OUT_INTS(coords, of_cart(comm, maxdims)))

W(Cartdim_get, (MPI_Comm comm, int *ndims),
  (comm, ndims),
  COMM(comm),
  OUT_INT(ndims))

W(Topo_test, (MPI_Comm comm, int *status),
  (comm, status),
  COMM(comm),
  OUT_ENUM(status, TOPOLOGIES))

W(Dims_create, (int nnodes, int ndims, int dims[]),
  (nnodes, ndims, dims),
  INT(nnodes) INT(ndims) int dims_before[ndims]; memcpy(dims_before, dims, sizeof dims_before);,
  INOUT_INTS(dims, ndims))

W(Graph_create, (MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int reorder,
 MPI_Comm *comm_graph),
  (comm_old, nnodes, indx, edges, reorder, comm_graph),
  COMM(comm_old) INT(nnodes) INTS(indx, nnodes) PEERS(edges, nnodes > 0 ? indx[nnodes - 1] : 0) BOOL(reorder),
  NEW_COMM(comm_graph))

W(Graph_get, (MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]),
  (comm, maxindex, maxedges, indx, edges),
  COMM(comm) INT(maxindex) INT(maxedges),
  OUT_INTS(indx, of_graph(comm, 0, maxindex)) OUT_PEERS(edges, of_graph(comm, 1, maxedges)))

W(Graphdims_get, (MPI_Comm comm, int *nnodes, int *nedges),
  (comm, nnodes, nedges),
  COMM(comm),
  OUT_INT(nnodes) OUT_INT(nedges))

W(Graph_neighbors, (MPI_Comm comm, int rank, int maxneighbors, int neighbors[]),
  (comm, rank, maxneighbors, neighbors),
  COMM(comm) PEER(rank) INT(maxneighbors),
  OUT_PEERS(neighbors, of_neighbors(comm, rank, maxneighbors)))

W(Graph_neighbors_count, (MPI_Comm comm, int rank, int *nneighbors),
  (comm, rank, nneighbors),
  COMM(comm) PEER(rank),
  OUT_INT(nneighbors))

W(Dist_graph_create, (MPI_Comm comm_old, int n, const int sources[], const int degrees[],
 const int destinations[], const int weights[], MPI_Info info, int reorder, MPI_Comm *comm_dist_graph),
  (comm_old, n, sources, degrees, destinations, weights, info, reorder, comm_dist_graph),
  COMM(comm_old) INT(n) PEERS(sources, n) INTS(degrees, n) INFO(info) BOOL(reorder) int total = sum(degrees, n);
   PEERS(destinations, total) WEIGHTS(weights, total),
  NEW_COMM(comm_dist_graph))

W(Dist_graph_create_adjacent, (MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[],
 int outdegree, const int destinations[], const int destweights[], MPI_Info info, int reorder,
 MPI_Comm *comm_dist_graph),
  (comm_old, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder,
   comm_dist_graph),
  COMM(comm_old) INT(indegree) PEERS(sources, indegree) WEIGHTS(sourceweights, indegree) INT(outdegree)
   PEERS(destinations, outdegree) WEIGHTS(destweights, outdegree) INFO(info) BOOL(reorder),
  NEW_COMM(comm_dist_graph))

W(Dist_graph_neighbors, (MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
 int destinations[], int destweights[]),
  (comm, maxindegree, sources, sourceweights, maxoutdegree, destinations, destweights),
  COMM(comm) INT(maxindegree) INT(maxoutdegree),
  OUT_PEERS(sources, maxindegree) OUT_WEIGHTS(sourceweights, of_weights(comm, 0, maxindegree))
   OUT_PEERS(destinations, maxoutdegree) OUT_WEIGHTS(destweights, of_weights(comm, 1, maxoutdegree)))

W(Dist_graph_neighbors_count, (MPI_Comm comm, int *indegree, int *outdegree, int *weighted),
  (comm, indegree, outdegree, weighted),
  COMM(comm),
  OUT_INT(indegree) OUT_INT(outdegree) OUT_BOOL(weighted))
