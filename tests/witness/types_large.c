/* Datatypes and packing beyond the common ones: what tells about types, external representation, the functions that
 * MPI 3.0 removed, and those with counts of type MPI_Count. */
#include "witness.h"

#ifdef OPEN_MPI
/* mpi.h keeps programs from these names; the library still has the functions. */
#undef MPI_Address
#undef MPI_Errhandler_create
#undef MPI_Errhandler_get
#undef MPI_Errhandler_set
#undef MPI_Type_extent
#undef MPI_Type_hindexed
#undef MPI_Type_hvector
#undef MPI_Type_lb
#undef MPI_Type_struct
#undef MPI_Type_ub
#endif

const struct constant TYPE_CLASSES[] = {{MPI_TYPECLASS_INTEGER, "MPI_TYPECLASS_INTEGER"},
                                        {MPI_TYPECLASS_REAL, "MPI_TYPECLASS_REAL"},
                                        {MPI_TYPECLASS_COMPLEX, "MPI_TYPECLASS_COMPLEX"},
                                        {0, NULL}};

/* A type that may be known. One the program made is one more reference; it may have freed its own before. */
static void put_found_type(MPI_Datatype type)
{
    int integers, addresses, types, combiner;
    ASK(MPI_Type_get_envelope, type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED)
        put_type(type);
    else
        put_new_object(TYPE, HANDLE(type));
}
/* MPI_Type_create_f90_x returns one type for the same arguments always; it is no named one, and never freed. */
static void put_f90_type(MPI_Datatype type)
{
    if (known_object(TYPE, HANDLE(type)))
        put_object(TYPE, HANDLE(type));
    else
        put_new_object(TYPE, HANDLE(type));
}
#define F90_TYPE(x) OUT(x, put_f90_type(*(x)))
#define FOUND_TYPE(x) OUT(x, put_found_type(*(x)))

W(Type_get_contents, (MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
 int array_of_integers[], MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]),
  (datatype, max_integers, max_addresses, max_datatypes, array_of_integers, array_of_addresses,
   array_of_datatypes),
  TYPE(datatype) INT(max_integers) INT(max_addresses) INT(max_datatypes),
  OUT_INTS(array_of_integers, of_type(datatype, 0, max_integers))
   OUT_INTS(array_of_addresses, of_type(datatype, 1, max_addresses))
   OUT(array_of_datatypes, LIST(i, of_type(datatype, 3, max_datatypes), put_found_type(array_of_datatypes[i]))))

W(Type_size_x, (MPI_Datatype datatype, MPI_Count *size),
  (datatype, size),
  TYPE(datatype),
  OUT_INT(size))

W(Type_get_extent_x, (MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent),
  (datatype, lb, extent),
  TYPE(datatype),
  OUT_INT(lb) OUT_INT(extent))

W(Type_get_true_extent_x, (MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent),
  (datatype, true_lb, true_extent),
  TYPE(datatype),
  OUT_INT(true_lb) OUT_INT(true_extent))

W(Get_elements_x, (const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count),
  (status, datatype, count),
  STATUS_IN(status) TYPE(datatype),
  OUT_UNDEFINABLE(count))

W(Type_match_size, (int typeclass, int size, MPI_Datatype *datatype),
  (typeclass, size, datatype),
  ENUM(typeclass, TYPE_CLASSES) INT(size),
  FOUND_TYPE(datatype))

W(Type_create_f90_integer, (int r, MPI_Datatype *newtype),
  (r, newtype),
  INT(r),
  F90_TYPE(newtype))

W(Type_create_f90_real, (int p, int r, MPI_Datatype *newtype),
  (p, r, newtype),
  UNDEFINABLE(p) UNDEFINABLE(r),
  F90_TYPE(newtype))

W(Type_create_f90_complex, (int p, int r, MPI_Datatype *newtype),
  (p, r, newtype),
  UNDEFINABLE(p) UNDEFINABLE(r),
  F90_TYPE(newtype))

W(Pack_external, (const char datarep[], const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf,
 MPI_Aint outsize, MPI_Aint *position),
  (datarep, inbuf, incount, datatype, outbuf, outsize, position),
  MPI_Aint position_before = *position; STRING(datarep) BUF(inbuf) INT(incount) TYPE(datatype) BUF(outbuf)
   INT(outsize),
  INOUT_INT(position))

W(Unpack_external, (const char datarep[], const void *inbuf, MPI_Aint insize, MPI_Aint *position, void *outbuf,
 int outcount, MPI_Datatype datatype),
  (datarep, inbuf, insize, position, outbuf, outcount, datatype),
  MPI_Aint position_before = *position; STRING(datarep) BUF(inbuf) INT(insize) BUF(outbuf) INT(outcount)
   TYPE(datatype),
  INOUT_INT(position))

W(Pack_external_size, (const char datarep[], int incount, MPI_Datatype datatype, MPI_Aint *size),
  (datarep, incount, datatype, size),
  STRING(datarep) INT(incount) TYPE(datatype),
  OUT_INT(size))

/* Removed in MPI 3.0. */
W(Address, (void *location, MPI_Aint *address),
  (location, address),
  BUF(location),
  OUT_ADDRESS(address))

#define EXTENT(name, out)                                                                                           \
    W(name, (MPI_Datatype datatype, MPI_Aint *out),                                                                 \
      (datatype, out),                                                                                              \
      TYPE(datatype),                                                                                               \
      OUT_INT(out))
EXTENT(Type_extent, extent)
EXTENT(Type_lb, displacement)
EXTENT(Type_ub, displacement)

W(Type_hvector, (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype),
  (count, blocklength, stride, oldtype, newtype),
  INT(count) INT(blocklength) INT(stride) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_hindexed, (int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
 MPI_Datatype *newtype),
  (count, array_of_blocklengths, array_of_displacements, oldtype, newtype),
  INT(count) INTS(array_of_blocklengths, count) INTS(array_of_displacements, count) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_struct, (int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
 MPI_Datatype array_of_types[], MPI_Datatype *newtype),
  (count, array_of_blocklengths, array_of_displacements, array_of_types, newtype),
  INT(count) INTS(array_of_blocklengths, count) INTS(array_of_displacements, count) TYPES(array_of_types, count),
  NEW_TYPE(newtype))

W(Errhandler_create, (MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler),
  (comm_errhandler_fn, errhandler),
  FUNCTION(comm_errhandler_fn),
  NEW_ERRH(errhandler))

W(Errhandler_get, (MPI_Comm comm, MPI_Errhandler *errhandler),
  (comm, errhandler),
  COMM(comm),
  NEW_ERRH(errhandler))

W(Errhandler_set, (MPI_Comm comm, MPI_Errhandler errhandler),
  (comm, errhandler),
  COMM(comm) ERRH(errhandler),
  )

#if MPI_VERSION >= 4

W(Type_contiguous_c, (MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype),
  (count, oldtype, newtype),
  INT(count) TYPE(oldtype),
  NEW_TYPE(newtype))

#define STRIDED(name)                                                                                               \
    W(name, (MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype, MPI_Datatype *newtype), \
      (count, blocklength, stride, oldtype, newtype),                                                               \
      INT(count) INT(blocklength) INT(stride) TYPE(oldtype),                                                        \
      NEW_TYPE(newtype))
STRIDED(Type_vector_c)
STRIDED(Type_create_hvector_c)

#define INDEXED(name)                                                                                               \
    W(name, (MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],    \
     MPI_Datatype oldtype, MPI_Datatype *newtype),                                                                  \
      (count, array_of_blocklengths, array_of_displacements, oldtype, newtype),                                     \
      INT(count) INTS(array_of_blocklengths, count) INTS(array_of_displacements, count) TYPE(oldtype),              \
      NEW_TYPE(newtype))
INDEXED(Type_indexed_c)
INDEXED(Type_create_hindexed_c)

#define BLOCKS(name)                                                                                                \
    W(name, (MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],                      \
     MPI_Datatype oldtype, MPI_Datatype *newtype),                                                                  \
      (count, blocklength, array_of_displacements, oldtype, newtype),                                               \
      INT(count) INT(blocklength) INTS(array_of_displacements, count) TYPE(oldtype),                                \
      NEW_TYPE(newtype))
BLOCKS(Type_create_indexed_block_c)
BLOCKS(Type_create_hindexed_block_c)

W(Type_create_struct_c, (MPI_Count count, const MPI_Count array_of_blocklengths[],
 const MPI_Count array_of_displacements[], const MPI_Datatype array_of_types[], MPI_Datatype *newtype),
  (count, array_of_blocklengths, array_of_displacements, array_of_types, newtype),
  INT(count) INTS(array_of_blocklengths, count) INTS(array_of_displacements, count) TYPES(array_of_types, count),
  NEW_TYPE(newtype))

W(Type_create_subarray_c, (int ndims, const MPI_Count array_of_sizes[], const MPI_Count array_of_subsizes[],
 const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype),
  (ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype, newtype),
  INT(ndims) INTS(array_of_sizes, ndims) INTS(array_of_subsizes, ndims) INTS(array_of_starts, ndims)
   ENUM(order, ORDERS) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_create_darray_c, (int size, int rank, int ndims, const MPI_Count array_of_gsizes[],
 const int array_of_distribs[], const int array_of_dargs[], const int array_of_psizes[], int order,
 MPI_Datatype oldtype, MPI_Datatype *newtype),
  (size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes, order, oldtype,
   newtype),
  INT(size) PEER(rank) INT(ndims) INTS(array_of_gsizes, ndims) ENUMS(array_of_distribs, ndims, DISTRIBUTIONS)
   ENUMS(array_of_dargs, ndims, DISTRIBUTION_ARGS) INTS(array_of_psizes, ndims) ENUM(order, ORDERS) TYPE(oldtype),
  NEW_TYPE(newtype))

W(Type_create_resized_c, (MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype),
  (oldtype, lb, extent, newtype),
  TYPE(oldtype) INT(lb) INT(extent),
  NEW_TYPE(newtype))

W(Type_size_c, (MPI_Datatype datatype, MPI_Count *size),
  (datatype, size),
  TYPE(datatype),
  OUT_INT(size))

W(Type_get_extent_c, (MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent),
  (datatype, lb, extent),
  TYPE(datatype),
  OUT_INT(lb) OUT_INT(extent))

W(Type_get_true_extent_c, (MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent),
  (datatype, true_lb, true_extent),
  TYPE(datatype),
  OUT_INT(true_lb) OUT_INT(true_extent))

W(Type_get_envelope_c, (MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count *num_addresses,
 MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner),
  (datatype, num_integers, num_addresses, num_large_counts, num_datatypes, combiner),
  TYPE(datatype),
  OUT_INT(num_integers) OUT_INT(num_addresses) OUT_INT(num_large_counts) OUT_INT(num_datatypes)
   OUT_ENUM(combiner, COMBINERS))

W(Type_get_contents_c, (MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
 MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
 MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]),
  (datatype, max_integers, max_addresses, max_large_counts, max_datatypes, array_of_integers, array_of_addresses,
   array_of_large_counts, array_of_datatypes),
  TYPE(datatype) INT(max_integers) INT(max_addresses) INT(max_large_counts) INT(max_datatypes),
  OUT_INTS(array_of_integers, of_large_type(datatype, 0, max_integers))
   OUT_INTS(array_of_addresses, of_large_type(datatype, 1, max_addresses))
   OUT_INTS(array_of_large_counts, of_large_type(datatype, 2, max_large_counts))
   OUT(array_of_datatypes,
       LIST(i, of_large_type(datatype, 3, max_datatypes), put_found_type(array_of_datatypes[i]))))

W(Pack_c, (const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
 MPI_Count *position, MPI_Comm comm),
  (inbuf, incount, datatype, outbuf, outsize, position, comm),
  MPI_Count position_before = *position; BUF(inbuf) INT(incount) TYPE(datatype) BUF(outbuf) INT(outsize)
   COMM(comm),
  INOUT_INT(position))

W(Unpack_c, (const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
 MPI_Datatype datatype, MPI_Comm comm),
  (inbuf, insize, position, outbuf, outcount, datatype, comm),
  MPI_Count position_before = *position; BUF(inbuf) INT(insize) BUF(outbuf) INT(outcount) TYPE(datatype)
   COMM(comm),
  INOUT_INT(position))

W(Pack_size_c, (MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size),
  (incount, datatype, comm, size),
  INT(incount) TYPE(datatype) COMM(comm),
  OUT_INT(size))

W(Pack_external_c, (const char datarep[], const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf,
 MPI_Count outsize, MPI_Count *position),
  (datarep, inbuf, incount, datatype, outbuf, outsize, position),
  MPI_Count position_before = *position; STRING(datarep) BUF(inbuf) INT(incount) TYPE(datatype) BUF(outbuf)
   INT(outsize),
  INOUT_INT(position))

W(Unpack_external_c, (const char datarep[], const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
 MPI_Count outcount, MPI_Datatype datatype),
  (datarep, inbuf, insize, position, outbuf, outcount, datatype),
  MPI_Count position_before = *position; STRING(datarep) BUF(inbuf) INT(insize) BUF(outbuf) INT(outcount)
   TYPE(datatype),
  INOUT_INT(position))

W(Pack_external_size_c, (const char datarep[], MPI_Count incount, MPI_Datatype datatype, MPI_Count *size),
  (datarep, incount, datatype, size),
  STRING(datarep) INT(incount) TYPE(datatype),
  OUT_INT(size))

#endif
