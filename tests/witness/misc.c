/* Start and end, reduction operations, infos, errors, attributes, memory, clocks. */
#include "witness.h"

W(Init, (int *argc, char ***argv),
  (argc, argv),
  ,
  put_arguments(argc, argv);)

W(Init_thread, (int *argc, char ***argv, int required, int *provided),
  (argc, argv, required, provided),
  ENUM(required, THREAD_LEVELS),
  put_arguments(argc, argv); OUT_ENUM(provided, THREAD_LEVELS))

W(Initialized, (int *flag),
  (flag),
  ,
  OUT_BOOL(flag))

W(Finalized, (int *flag),
  (flag),
  ,
  OUT_BOOL(flag))

W(Finalize, (void),
  (),
  ,
  )

W(Query_thread, (int *provided),
  (provided),
  ,
  OUT_ENUM(provided, THREAD_LEVELS))

W(Is_thread_main, (int *flag),
  (flag),
  ,
  OUT_BOOL(flag))

W(Op_create, (MPI_User_function *user_fn, int commute, MPI_Op *op),
  (user_fn, commute, op),
  FUNCTION(user_fn) BOOL(commute),
  NEW_OP(op))

W(Op_free, (MPI_Op *op),
  (op),
  MPI_Op old = *op; OP_AT(op),
  FREED(OP, old))

W(Op_commutative, (MPI_Op op, int *commute),
  (op, commute),
  OP(op),
  OUT_BOOL(commute))

W(Info_create, (MPI_Info *info),
  (info),
  ,
  NEW_INFO(info))

W(Info_set, (MPI_Info info, const char *key, const char *value),
  (info, key, value),
  INFO(info) STRING(key) STRING(value),
  )

W(Info_get, (MPI_Info info, const char *key, int valuelen, char *value, int *flag),
  (info, key, valuelen, value, flag),
  INFO(info) STRING(key) INT(valuelen),
  OUT_BOOL(flag) IF(*flag) OUT_STRING(value))

W(Info_delete, (MPI_Info info, const char *key),
  (info, key),
  INFO(info) STRING(key),
  )

W(Info_dup, (MPI_Info info, MPI_Info *newinfo),
  (info, newinfo),
  INFO(info),
  NEW_INFO(newinfo))

W(Info_free, (MPI_Info *info),
  (info),
  MPI_Info old = *info; INFO_AT(info),
  FREED(INFO, old))

W(Info_get_nkeys, (MPI_Info info, int *nkeys),
  (info, nkeys),
  INFO(info),
  OUT_INT(nkeys))

W(Info_get_nthkey, (MPI_Info info, int n, char *key),
  (info, n, key),
  INFO(info) INT(n),
  OUT_STRING(key))

W(Info_get_valuelen, (MPI_Info info, const char *key, int *valuelen, int *flag),
  (info, key, valuelen, flag),
  INFO(info) STRING(key),
  OUT_BOOL(flag) IF(*flag) OUT_INT(valuelen))

W(Get_processor_name, (char *name, int *resultlen),
  (name, resultlen),
  ,
  OUT_STRING(name) OUT_INT(resultlen))

W(Get_version, (int *version, int *subversion),
  (version, subversion),
  ,
  OUT_INT(version) OUT_INT(subversion))

W(Get_library_version, (char *version, int *resultlen),
  (version, resultlen),
  ,
  OUT_STRING(version) OUT_INT(resultlen))

W(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler errhandler),
  (comm, errhandler),
  COMM(comm) ERRH(errhandler),
  )

W(Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler *errhandler),
  (comm, errhandler),
  COMM(comm),
  NEW_ERRH(errhandler))

W(Comm_call_errhandler, (MPI_Comm comm, int errorcode),
  (comm, errorcode),
  COMM(comm) INT(errorcode),
  )

W(Errhandler_free, (MPI_Errhandler *errhandler),
  (errhandler),
  MPI_Errhandler old = *errhandler; ERRH_AT(errhandler),
  FREED(ERRHANDLER, old))

W(Error_class, (int errorcode, int *errorclass),
  (errorcode, errorclass),
  INT(errorcode),
  OUT_ENUM(errorclass, ERROR_CLASSES))

W(Error_string, (int errorcode, char *string, int *resultlen),
  (errorcode, string, resultlen),
  INT(errorcode),
  OUT_STRING(string) OUT_INT(resultlen))

W(Alloc_mem, (MPI_Aint size, MPI_Info info, void *baseptr),
  (size, info, baseptr),
  INT(size) INFO(info),
  OUT_POINTER(baseptr))

W(Free_mem, (void *base),
  (base),
  VALUE(base),
  )

W(Comm_create_keyval, (MPI_Comm_copy_attr_function *comm_copy_attr_fn,
 MPI_Comm_delete_attr_function *comm_delete_attr_fn, int *comm_keyval, void *extra_state),
  (comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state),
  FUNCTION(comm_copy_attr_fn) FUNCTION(comm_delete_attr_fn) VALUE(extra_state),
  NEW_KEYVAL(comm_keyval))

W(Comm_free_keyval, (int *comm_keyval),
  (comm_keyval),
  int old = *comm_keyval; KEYVAL_AT(comm_keyval),
  FREED(KEYVAL, old))

W(Comm_set_attr, (MPI_Comm comm, int comm_keyval, void *attribute_val),
  (comm, comm_keyval, attribute_val),
  COMM(comm) KEYVAL(comm_keyval) VALUE(attribute_val),
  )

W(Comm_get_attr, (MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag),
  (comm, comm_keyval, attribute_val, flag),
  COMM(comm) KEYVAL(comm_keyval),
  OUT_BOOL(flag) IF(*flag) OUT_POINTER(attribute_val))

W(Comm_delete_attr, (MPI_Comm comm, int comm_keyval),
  (comm, comm_keyval),
  COMM(comm) KEYVAL(comm_keyval),
  )

WATCH(double, Wtime, (void), (), , , NOTHING)
WATCH(double, Wtick, (void), (), , , NOTHING)
