/* Datatypes, and packing. */
#include "witness.h"

W(Type_contiguous, (int count, MPI_Datatype oldtype, MPI_Datatype *newtype),
  (count, oldtype, newtype),
  INT(count) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_vector, (int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype),
  (count, blocklength, stride, oldtype, newtype),
  INT(count) INT(blocklength) INT(stride) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_create_hvector, (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype),
  (count, blocklength, stride, oldtype, newtype),
  INT(count) INT(blocklength) INT(stride) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_indexed, (int count, const int array_of_blocklengths[], const int array_of_displacements[],
 MPI_Datatype oldtype, MPI_Datatype *newtype),
  (count, array_of_blocklengths, array_of_displacements, oldtype, newtype),
  INT(count) INTS(array_of_blocklengths, count) INTS(array_of_displacements, count) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_create_hindexed, (int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
 MPI_Datatype oldtype, MPI_Datatype *newtype),
  (count, array_of_blocklengths, array_of_displacements, oldtype, newtype),
  INT(count) INTS(array_of_blocklengths, count) INTS(array_of_displacements, count) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_create_indexed_block, (int count, int blocklength, const int array_of_displacements[],
 MPI_Datatype oldtype, MPI_Datatype *newtype),
  (count, blocklength, array_of_displacements, oldtype, newtype),
  INT(count) INT(blocklength) INTS(array_of_displacements, count) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_create_hindexed_block, (int count, int blocklength, const MPI_Aint array_of_displacements[],
 MPI_Datatype oldtype, MPI_Datatype *newtype),
  (count, blocklength, array_of_displacements, oldtype, newtype),
  INT(count) INT(blocklength) INTS(array_of_displacements, count) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_create_struct, (int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
 const MPI_Datatype array_of_types[], MPI_Datatype *newtype),
  (count, array_of_blocklengths, array_of_displacements, array_of_types, newtype),
  INT(count) INTS(array_of_blocklengths, count) INTS(array_of_displacements, count) TYPES(array_of_types, count),
  NEW_TYPE(newtype))

W(Type_create_subarray, (int ndims, const int array_of_sizes[], const int array_of_subsizes[],
 const int array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype),
  (ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype, newtype),
  INT(ndims) INTS(array_of_sizes, ndims) INTS(array_of_subsizes, ndims) INTS(array_of_starts, ndims)
   ENUM(order, ORDERS) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_create_resized, (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype),
  (oldtype, lb, extent, newtype),
  TYPE(oldtype) INT(lb) INT(extent),
  NEW_TYPE(newtype))

W(Type_create_darray, (int size, int rank, int ndims, const int array_of_gsizes[], const int array_of_distribs[],
 const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype),
  (size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes, order, oldtype,
   newtype),
  INT(size) PEER(rank) INT(ndims) INTS(array_of_gsizes, ndims) ENUMS(array_of_distribs, ndims, DISTRIBUTIONS)
   ENUMS(array_of_dargs, ndims, DISTRIBUTION_ARGS) INTS(array_of_psizes, ndims) ENUM(order, ORDERS) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_dup, (MPI_Datatype oldtype, MPI_Datatype *newtype),
  (oldtype, newtype),
  TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_commit, (MPI_Datatype *datatype),
  (datatype),
  TYPE_AT(datatype),
  )

W(Type_free, (MPI_Datatype *datatype),
  (datatype),
  MPI_Datatype old = *datatype; TYPE_AT(datatype),
  FREED(TYPE, old))

W(Type_size, (MPI_Datatype datatype, int *size),
  (datatype, size),
  TYPE(datatype),
  OUT_INT(size))

W(Type_get_extent, (MPI_Datatype datatype, MPI_Aint *lb, MPI_Aint *extent),
  (datatype, lb, extent),
  TYPE(datatype),
  OUT_INT(lb) OUT_INT(extent))

W(Type_get_true_extent, (MPI_Datatype datatype, MPI_Aint *true_lb, MPI_Aint *true_extent),
  (datatype, true_lb, true_extent),
  TYPE(datatype),
  OUT_INT(true_lb) OUT_INT(true_extent))

W(Type_get_envelope, (MPI_Datatype datatype, int *num_integers, int *num_addresses, int *num_datatypes,
 int *combiner),
  (datatype, num_integers, num_addresses, num_datatypes, combiner),
  TYPE(datatype),
  OUT_INT(num_integers) OUT_INT(num_addresses) OUT_INT(num_datatypes) OUT_ENUM(combiner, COMBINERS))

W(Type_get_name, (MPI_Datatype datatype, char *type_name, int *resultlen),
  (datatype, type_name, resultlen),
  TYPE(datatype),
  OUT_STRING(type_name) OUT_INT(resultlen))

W(Type_set_name, (MPI_Datatype datatype, const char *type_name),
  (datatype, type_name),
  TYPE(datatype) STRING(type_name),
  )

W(Get_address, (const void *location, MPI_Aint *address),
  (location, address),
  BUF(location),
  OUT_ADDRESS(address))

W(Pack, (const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, int outsize, int *position,
 MPI_Comm comm),
  (inbuf, incount, datatype, outbuf, outsize, position, comm),
  int position_before = *position; BUF(inbuf) INT(incount) TYPE(datatype) BUF(outbuf) INT(outsize) COMM(comm),
  INOUT_INT(position))

W(Unpack, (const void *inbuf, int insize, int *position, void *outbuf, int outcount, MPI_Datatype datatype,
 MPI_Comm comm),
  (inbuf, insize, position, outbuf, outcount, datatype, comm),
  int position_before = *position; BUF(inbuf) INT(insize) BUF(outbuf) INT(outcount) TYPE(datatype) COMM(comm),
  INOUT_INT(position))

W(Pack_size, (int incount, MPI_Datatype datatype, MPI_Comm comm, int *size),
  (incount, datatype, comm, size),
  INT(incount) TYPE(datatype) COMM(comm),
  OUT_INT(size))
