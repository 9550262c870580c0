/* Collectives. Which arguments count depends on the root, on MPI_IN_PLACE and on the kind of communicator. */
#include "witness.h"

W(Barrier, (MPI_Comm comm),
  (comm),
  COMM(comm),
  )

W(Bcast, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm),
  (buffer, count, datatype, root, comm),
  PEER(root) COMM(comm) IF(takes_part(root, comm)) BUF(buffer) INT(count) TYPE(datatype) ALWAYS,
  )

W(Gather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, int root, MPI_Comm comm),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
  PEER(root) COMM(comm) IF(at_leaf(root, comm)) BUF(sendbuf) IF(at_leaf(root, comm) && sendbuf != MPI_IN_PLACE)
   INT(sendcount) TYPE(sendtype) IF(at_root(root, comm)) BUF(recvbuf) INT(recvcount) TYPE(recvtype) ALWAYS,
  )

W(Gatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
 const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm),
  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm),
  PEER(root) COMM(comm) IF(at_leaf(root, comm)) BUF(sendbuf) IF(at_leaf(root, comm) && sendbuf != MPI_IN_PLACE)
   INT(sendcount) TYPE(sendtype) IF(at_root(root, comm)) BUF(recvbuf) INTS(recvcounts, peers_of(comm))
   INTS(displs, peers_of(comm)) TYPE(recvtype) ALWAYS,
  )

W(Scatter, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, int root, MPI_Comm comm),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
  PEER(root) COMM(comm) IF(at_root(root, comm)) BUF(sendbuf) INT(sendcount) TYPE(sendtype) IF(at_leaf(root, comm))
   BUF(recvbuf) IF(at_leaf(root, comm) && recvbuf != MPI_IN_PLACE) INT(recvcount) TYPE(recvtype) ALWAYS,
  )

W(Scatterv, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
 void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
  (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm),
  PEER(root) COMM(comm) IF(at_root(root, comm)) BUF(sendbuf) INTS(sendcounts, peers_of(comm))
   INTS(displs, peers_of(comm)) TYPE(sendtype) IF(at_leaf(root, comm)) BUF(recvbuf)
   IF(at_leaf(root, comm) && recvbuf != MPI_IN_PLACE) INT(recvcount) TYPE(recvtype) ALWAYS,
  )

W(Allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, MPI_Comm comm),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
  BUF(sendbuf) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm) IF(sendbuf != MPI_IN_PLACE) INT(sendcount)
   TYPE(sendtype) ALWAYS,
  )

W(Allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
 const int displs[], MPI_Datatype recvtype, MPI_Comm comm),
  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(displs, peers_of(comm)) TYPE(recvtype)
   COMM(comm) IF(sendbuf != MPI_IN_PLACE) INT(sendcount) TYPE(sendtype) ALWAYS,
  )

W(Alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, MPI_Comm comm),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
  BUF(sendbuf) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm) IF(sendbuf != MPI_IN_PLACE) INT(sendcount)
   TYPE(sendtype) ALWAYS,
  )

W(Alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
 void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(rdispls, peers_of(comm)) TYPE(recvtype)
   COMM(comm) IF(sendbuf != MPI_IN_PLACE) INTS(sendcounts, peers_of(comm)) INTS(sdispls, peers_of(comm))
   TYPE(sendtype) ALWAYS,
  )

W(Alltoallw, (const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
 void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(rdispls, peers_of(comm))
   TYPES(recvtypes, peers_of(comm)) COMM(comm) IF(sendbuf != MPI_IN_PLACE) INTS(sendcounts, peers_of(comm))
   INTS(sdispls, peers_of(comm)) TYPES(sendtypes, peers_of(comm)) ALWAYS,
  )

W(Reduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
 MPI_Comm comm),
  (sendbuf, recvbuf, count, datatype, op, root, comm),
  PEER(root) COMM(comm) IF(at_leaf(root, comm)) BUF(sendbuf) IF(at_root(root, comm)) BUF(recvbuf)
   IF(takes_part(root, comm)) INT(count) TYPE(datatype) OP(op) ALWAYS,
  )

W(Allreduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
  (sendbuf, recvbuf, count, datatype, op, comm),
  BUF(sendbuf) BUF(recvbuf) INT(count) TYPE(datatype) OP(op) COMM(comm),
  )

W(Reduce_scatter, (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
 MPI_Comm comm),
  (sendbuf, recvbuf, recvcounts, datatype, op, comm),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, local_size(comm)) TYPE(datatype) OP(op) COMM(comm),
  )

W(Reduce_scatter_block, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
 MPI_Comm comm),
  (sendbuf, recvbuf, recvcount, datatype, op, comm),
  BUF(sendbuf) BUF(recvbuf) INT(recvcount) TYPE(datatype) OP(op) COMM(comm),
  )

W(Scan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
  (sendbuf, recvbuf, count, datatype, op, comm),
  BUF(sendbuf) BUF(recvbuf) INT(count) TYPE(datatype) OP(op) COMM(comm),
  )

W(Exscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
  (sendbuf, recvbuf, count, datatype, op, comm),
  BUF(sendbuf) BUF(recvbuf) INT(count) TYPE(datatype) OP(op) COMM(comm),
  )

W(Ibarrier, (MPI_Comm comm, MPI_Request *request),
  (comm, request),
  COMM(comm),
  NEW_REQ(request))

W(Ibcast, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request),
  (buffer, count, datatype, root, comm, request),
  PEER(root) COMM(comm) IF(takes_part(root, comm)) BUF(buffer) INT(count) TYPE(datatype) ALWAYS,
  NEW_REQ(request))

W(Igather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request),
  PEER(root) COMM(comm) IF(at_leaf(root, comm)) BUF(sendbuf) IF(at_leaf(root, comm) && sendbuf != MPI_IN_PLACE)
   INT(sendcount) TYPE(sendtype) IF(at_root(root, comm)) BUF(recvbuf) INT(recvcount) TYPE(recvtype) ALWAYS,
  NEW_REQ(request))

W(Igatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
 const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, request),
  PEER(root) COMM(comm) IF(at_leaf(root, comm)) BUF(sendbuf) IF(at_leaf(root, comm) && sendbuf != MPI_IN_PLACE)
   INT(sendcount) TYPE(sendtype) IF(at_root(root, comm)) BUF(recvbuf) INTS(recvcounts, peers_of(comm))
   INTS(displs, peers_of(comm)) TYPE(recvtype) ALWAYS,
  NEW_REQ(request))

W(Iscatter, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request),
  PEER(root) COMM(comm) IF(at_root(root, comm)) BUF(sendbuf) INT(sendcount) TYPE(sendtype) IF(at_leaf(root, comm))
   BUF(recvbuf) IF(at_leaf(root, comm) && recvbuf != MPI_IN_PLACE) INT(recvcount) TYPE(recvtype) ALWAYS,
  NEW_REQ(request))

W(Iscatterv, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
 void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, request),
  PEER(root) COMM(comm) IF(at_root(root, comm)) BUF(sendbuf) INTS(sendcounts, peers_of(comm))
   INTS(displs, peers_of(comm)) TYPE(sendtype) IF(at_leaf(root, comm)) BUF(recvbuf)
   IF(at_leaf(root, comm) && recvbuf != MPI_IN_PLACE) INT(recvcount) TYPE(recvtype) ALWAYS,
  NEW_REQ(request))

W(Iallgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request),
  BUF(sendbuf) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm) IF(sendbuf != MPI_IN_PLACE) INT(sendcount)
   TYPE(sendtype) ALWAYS,
  NEW_REQ(request))

W(Iallgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
 const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(displs, peers_of(comm)) TYPE(recvtype)
   COMM(comm) IF(sendbuf != MPI_IN_PLACE) INT(sendcount) TYPE(sendtype) ALWAYS,
  NEW_REQ(request))

W(Ialltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request),
  BUF(sendbuf) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm) IF(sendbuf != MPI_IN_PLACE) INT(sendcount)
   TYPE(sendtype) ALWAYS,
  NEW_REQ(request))

W(Ialltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
 void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
 MPI_Request *request),
  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(rdispls, peers_of(comm)) TYPE(recvtype)
   COMM(comm) IF(sendbuf != MPI_IN_PLACE) INTS(sendcounts, peers_of(comm)) INTS(sdispls, peers_of(comm))
   TYPE(sendtype) ALWAYS,
  NEW_REQ(request))

W(Ialltoallw, (const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
 void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
 MPI_Request *request),
  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, peers_of(comm)) INTS(rdispls, peers_of(comm))
   TYPES(recvtypes, peers_of(comm)) COMM(comm) IF(sendbuf != MPI_IN_PLACE) INTS(sendcounts, peers_of(comm))
   INTS(sdispls, peers_of(comm)) TYPES(sendtypes, peers_of(comm)) ALWAYS,
  NEW_REQ(request))

W(Ireduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
 MPI_Comm comm, MPI_Request *request),
  (sendbuf, recvbuf, count, datatype, op, root, comm, request),
  PEER(root) COMM(comm) IF(at_leaf(root, comm)) BUF(sendbuf) IF(at_root(root, comm)) BUF(recvbuf)
   IF(takes_part(root, comm)) INT(count) TYPE(datatype) OP(op) ALWAYS,
  NEW_REQ(request))

W(Iallreduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
 MPI_Request *request),
  (sendbuf, recvbuf, count, datatype, op, comm, request),
  BUF(sendbuf) BUF(recvbuf) INT(count) TYPE(datatype) OP(op) COMM(comm),
  NEW_REQ(request))

W(Ireduce_scatter, (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
 MPI_Comm comm, MPI_Request *request),
  (sendbuf, recvbuf, recvcounts, datatype, op, comm, request),
  BUF(sendbuf) BUF(recvbuf) INTS(recvcounts, local_size(comm)) TYPE(datatype) OP(op) COMM(comm),
  NEW_REQ(request))

W(Ireduce_scatter_block, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
 MPI_Comm comm, MPI_Request *request),
  (sendbuf, recvbuf, recvcount, datatype, op, comm, request),
  BUF(sendbuf) BUF(recvbuf) INT(recvcount) TYPE(datatype) OP(op) COMM(comm),
  NEW_REQ(request))

W(Iscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
 MPI_Request *request),
  (sendbuf, recvbuf, count, datatype, op, comm, request),
  BUF(sendbuf) BUF(recvbuf) INT(count) TYPE(datatype) OP(op) COMM(comm),
  NEW_REQ(request))

W(Iexscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
 MPI_Request *request),
  (sendbuf, recvbuf, count, datatype, op, comm, request),
  BUF(sendbuf) BUF(recvbuf) INT(count) TYPE(datatype) OP(op) COMM(comm),
  NEW_REQ(request))

W(Reduce_local, (const void *inbuf, void *inoutbuf, int count, MPI_Datatype datatype, MPI_Op op),
  (inbuf, inoutbuf, count, datatype, op),
  BUF(inbuf) BUF(inoutbuf) INT(count) TYPE(datatype) OP(op),
  )

W(Neighbor_allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, MPI_Comm comm),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
  BUF(sendbuf) INT(sendcount) TYPE(sendtype) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm),
  )

W(Neighbor_allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
 const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm),
  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),
  BUF(sendbuf) INT(sendcount) TYPE(sendtype) BUF(recvbuf) INTS(recvcounts, in_degree(comm))
   INTS(displs, in_degree(comm)) TYPE(recvtype) COMM(comm),
  )

W(Neighbor_alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, MPI_Comm comm),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
  BUF(sendbuf) INT(sendcount) TYPE(sendtype) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm),
  )

W(Neighbor_alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
 void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
  BUF(sendbuf) INTS(sendcounts, out_degree(comm)) INTS(sdispls, out_degree(comm)) TYPE(sendtype) BUF(recvbuf)
   INTS(recvcounts, in_degree(comm)) INTS(rdispls, in_degree(comm)) TYPE(recvtype) COMM(comm),
  )

W(Neighbor_alltoallw, (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
 const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
 const MPI_Datatype recvtypes[], MPI_Comm comm),
  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
  BUF(sendbuf) INTS(sendcounts, out_degree(comm)) INTS(sdispls, out_degree(comm))
   TYPES(sendtypes, out_degree(comm)) BUF(recvbuf) INTS(recvcounts, in_degree(comm))
   INTS(rdispls, in_degree(comm)) TYPES(recvtypes, in_degree(comm)) COMM(comm),
  )

W(Ineighbor_allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request),
  BUF(sendbuf) INT(sendcount) TYPE(sendtype) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm),
  NEW_REQ(request))

W(Ineighbor_allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
 const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request),
  BUF(sendbuf) INT(sendcount) TYPE(sendtype) BUF(recvbuf) INTS(recvcounts, in_degree(comm))
   INTS(displs, in_degree(comm)) TYPE(recvtype) COMM(comm),
  NEW_REQ(request))

W(Ineighbor_alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
 MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request),
  BUF(sendbuf) INT(sendcount) TYPE(sendtype) BUF(recvbuf) INT(recvcount) TYPE(recvtype) COMM(comm),
  NEW_REQ(request))

W(Ineighbor_alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
 void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
 MPI_Request *request),
  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request),
  BUF(sendbuf) INTS(sendcounts, out_degree(comm)) INTS(sdispls, out_degree(comm)) TYPE(sendtype) BUF(recvbuf)
   INTS(recvcounts, in_degree(comm)) INTS(rdispls, in_degree(comm)) TYPE(recvtype) COMM(comm),
  NEW_REQ(request))

W(Ineighbor_alltoallw, (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
 const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
 const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request),
  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request),
  BUF(sendbuf) INTS(sendcounts, out_degree(comm)) INTS(sdispls, out_degree(comm))
   TYPES(sendtypes, out_degree(comm)) BUF(recvbuf) INTS(recvcounts, in_degree(comm))
   INTS(rdispls, in_degree(comm)) TYPES(recvtypes, in_degree(comm)) COMM(comm),
  NEW_REQ(request))
