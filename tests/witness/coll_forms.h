/* Every collective with arguments of its own, once more in the form that the includer has set up:
 *   FORM(Name, name)   the function's name in that form (Iallgather_c of Allgather, allgather)
 *   COUNT, DISP        the types of counts and displacements
 *   PARAMS, ARGS       what comes behind the arguments of the blocking form, with its comma
 *   BEFORE, AFTER      how that is logged */

W(FORM(Bcast, bcast), (void *buffer, COUNT count, MPI_Datatype datatype, int root, MPI_Comm comm PARAMS),
  (buffer, count, datatype, root, comm ARGS),
  PEER(root) COMM(comm) BEFORE IF(takes_part(root, comm)) BUF(buffer) INT(count) TYPE(datatype) ALWAYS,
  AFTER)

W(FORM(Gather, gather), (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
 MPI_Datatype recvtype, int root, MPI_Comm comm PARAMS),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm ARGS),
  PEER(root) COMM(comm) BEFORE IF(at_leaf(root, comm)) BUF(sendbuf)
   IF(at_leaf(root, comm) && sendbuf != MPI_IN_PLACE) INT(sendcount) TYPE(sendtype) IF(at_root(root, comm))
   BUF(recvbuf) INT(recvcount) TYPE(recvtype) ALWAYS,
  AFTER)

W(FORM(Gatherv, gatherv), (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf,
 const COUNT recvcounts[], const DISP displs[], MPI_Datatype recvtype, int root, MPI_Comm comm PARAMS),
  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm ARGS),
  PEER(root) COMM(comm) BEFORE IF(at_leaf(root, comm)) BUF(sendbuf)
   IF(at_leaf(root, comm) && sendbuf != MPI_IN_PLACE) INT(sendcount) TYPE(sendtype) IF(at_root(root, comm))
   BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(displs, peers_of(comm)) TYPE(recvtype) ALWAYS,
  AFTER)

W(FORM(Scatter, scatter), (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf,
 COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm PARAMS),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm ARGS),
  PEER(root) COMM(comm) BEFORE IF(at_root(root, comm)) BUF(sendbuf) INT(sendcount) TYPE(sendtype)
   IF(at_leaf(root, comm)) BUF(recvbuf) IF(at_leaf(root, comm) && recvbuf != MPI_IN_PLACE) INT(recvcount)
   TYPE(recvtype) ALWAYS,
  AFTER)

W(FORM(Scatterv, scatterv), (const void *sendbuf, const COUNT sendcounts[], const DISP displs[],
 MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm PARAMS),
  (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm ARGS),
  PEER(root) COMM(comm) BEFORE IF(at_root(root, comm)) BUF(sendbuf) INTS(sendcounts, peers_of(comm))
   INTS(displs, peers_of(comm)) TYPE(sendtype) IF(at_leaf(root, comm)) BUF(recvbuf)
   IF(at_leaf(root, comm) && recvbuf != MPI_IN_PLACE) INT(recvcount) TYPE(recvtype) ALWAYS,
  AFTER)

W(FORM(Allgather, allgather), (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf,
 COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm PARAMS),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm ARGS),
  BUF(sendbuf) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm) BEFORE IF(sendbuf != MPI_IN_PLACE)
   INT(sendcount) TYPE(sendtype) ALWAYS,
  AFTER)

W(FORM(Allgatherv, allgatherv), (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf,
 const COUNT recvcounts[], const DISP displs[], MPI_Datatype recvtype, MPI_Comm comm PARAMS),
  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm ARGS),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(displs, peers_of(comm)) TYPE(recvtype)
   COMM(comm) BEFORE IF(sendbuf != MPI_IN_PLACE) INT(sendcount) TYPE(sendtype) ALWAYS,
  AFTER)

W(FORM(Alltoall, alltoall), (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf,
 COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm PARAMS),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm ARGS),
  BUF(sendbuf) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm) BEFORE IF(sendbuf != MPI_IN_PLACE)
   INT(sendcount) TYPE(sendtype) ALWAYS,
  AFTER)

W(FORM(Alltoallv, alltoallv), (const void *sendbuf, const COUNT sendcounts[], const DISP sdispls[],
 MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], const DISP rdispls[], MPI_Datatype recvtype,
 MPI_Comm comm PARAMS),
  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm ARGS),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(rdispls, peers_of(comm)) TYPE(recvtype)
   COMM(comm) BEFORE IF(sendbuf != MPI_IN_PLACE) INTS(sendcounts, peers_of(comm)) INTS(sdispls, peers_of(comm))
   TYPE(sendtype) ALWAYS,
  AFTER)

W(FORM(Alltoallw, alltoallw), (const void *sendbuf, const COUNT sendcounts[], const DISP sdispls[],
 const MPI_Datatype sendtypes[], void *recvbuf, const COUNT recvcounts[], const DISP rdispls[],
 const MPI_Datatype recvtypes[], MPI_Comm comm PARAMS),
  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm ARGS),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(rdispls, peers_of(comm))
   TYPES(recvtypes, peers_of(comm)) COMM(comm) BEFORE IF(sendbuf != MPI_IN_PLACE) INTS(sendcounts, peers_of(comm))
   INTS(sdispls, peers_of(comm)) TYPES(sendtypes, peers_of(comm)) ALWAYS,
  AFTER)

W(FORM(Reduce, reduce), (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, int root,
 MPI_Comm comm PARAMS),
  (sendbuf, recvbuf, count, datatype, op, root, comm ARGS),
  PEER(root) COMM(comm) BEFORE IF(at_leaf(root, comm)) BUF(sendbuf) IF(at_root(root, comm)) BUF(recvbuf)
   IF(takes_part(root, comm)) INT(count) TYPE(datatype) OP(op) ALWAYS,
  AFTER)

#define REDUCTION(Name, name)                                                                                       \
    W(FORM(Name, name), (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op,         \
     MPI_Comm comm PARAMS),                                                                                         \
      (sendbuf, recvbuf, count, datatype, op, comm ARGS),                                                           \
      BUF(sendbuf) BUF(recvbuf) INT(count) TYPE(datatype) OP(op) COMM(comm) BEFORE,                                 \
      AFTER)
REDUCTION(Allreduce, allreduce)
REDUCTION(Scan, scan)
REDUCTION(Exscan, exscan)
#undef REDUCTION

W(FORM(Reduce_scatter, reduce_scatter), (const void *sendbuf, void *recvbuf, const COUNT recvcounts[],
 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm PARAMS),
  (sendbuf, recvbuf, recvcounts, datatype, op, comm ARGS),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, local_size(comm)) TYPE(datatype) OP(op) COMM(comm) BEFORE,
  AFTER)

W(FORM(Reduce_scatter_block, reduce_scatter_block), (const void *sendbuf, void *recvbuf, COUNT recvcount,
 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm PARAMS),
  (sendbuf, recvbuf, recvcount, datatype, op, comm ARGS),
  BUF(sendbuf) BUF(recvbuf) INT(recvcount) TYPE(datatype) OP(op) COMM(comm) BEFORE,
  AFTER)

#define NEIGHBORS(Name, name)                                                                                       \
    W(FORM(Name, name), (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf,                \
     COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm PARAMS),                                                 \
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm ARGS),                                      \
      BUF(sendbuf) INT(sendcount) TYPE(sendtype) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm) BEFORE,      \
      AFTER)
NEIGHBORS(Neighbor_allgather, neighbor_allgather)
NEIGHBORS(Neighbor_alltoall, neighbor_alltoall)
#undef NEIGHBORS

W(FORM(Neighbor_allgatherv, neighbor_allgatherv), (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype,
 void *recvbuf, const COUNT recvcounts[], const DISP displs[], MPI_Datatype recvtype, MPI_Comm comm PARAMS),
  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm ARGS),
  BUF(sendbuf) INT(sendcount) TYPE(sendtype) BUF(recvbuf) INTS(recvcounts, in_degree(comm))
   INTS(displs, in_degree(comm)) TYPE(recvtype) COMM(comm) BEFORE,
  AFTER)

W(FORM(Neighbor_alltoallv, neighbor_alltoallv), (const void *sendbuf, const COUNT sendcounts[],
 const DISP sdispls[], MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], const DISP rdispls[],
 MPI_Datatype recvtype, MPI_Comm comm PARAMS),
  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm ARGS),
  BUF(sendbuf) INTS(sendcounts, out_degree(comm)) INTS(sdispls, out_degree(comm)) TYPE(sendtype) BUF(recvbuf)
   INTS(recvcounts, in_degree(comm)) INTS(rdispls, in_degree(comm)) TYPE(recvtype) COMM(comm) BEFORE,
  AFTER)

W(FORM(Neighbor_alltoallw, neighbor_alltoallw), (const void *sendbuf, const COUNT sendcounts[],
 const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const COUNT recvcounts[],
 const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm PARAMS),
  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm ARGS),
  BUF(sendbuf) INTS(sendcounts, out_degree(comm)) INTS(sdispls, out_degree(comm))
   TYPES(sendtypes, out_degree(comm)) BUF(recvbuf) INTS(recvcounts, in_degree(comm))
   INTS(rdispls, in_degree(comm)) TYPES(recvtypes, in_degree(comm)) COMM(comm) BEFORE,
  AFTER)
