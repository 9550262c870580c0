/* What a program brings along: attributes, error handlers, error codes, generalized requests; and its own addresses. */
#include "witness.h"

/* The status after the call: it changes one field of it. */
#define STATUS_OUT(x) slot(#x); put_status(x, 0);

W(Type_create_keyval, (MPI_Type_copy_attr_function *type_copy_attr_fn,
 MPI_Type_delete_attr_function *type_delete_attr_fn, int *type_keyval, void *extra_state),
  (type_copy_attr_fn, type_delete_attr_fn, type_keyval, extra_state),
  FUNCTION(type_copy_attr_fn) FUNCTION(type_delete_attr_fn) VALUE(extra_state),
  NEW_KEYVAL(type_keyval))

W(Type_free_keyval, (int *type_keyval),
  (type_keyval),
  int old = *type_keyval; KEYVAL_AT(type_keyval),
  FREED(KEYVAL, old))

W(Type_set_attr, (MPI_Datatype datatype, int type_keyval, void *attribute_val),
  (datatype, type_keyval, attribute_val),
  TYPE(datatype) KEYVAL(type_keyval) VALUE(attribute_val),
  )

W(Type_get_attr, (MPI_Datatype datatype, int type_keyval, void *attribute_val, int *flag),
  (datatype, type_keyval, attribute_val, flag),
  TYPE(datatype) KEYVAL(type_keyval),
  OUT_BOOL(flag) IF(*flag) OUT_POINTER(attribute_val))

W(Type_delete_attr, (MPI_Datatype datatype, int type_keyval),
  (datatype, type_keyval),
  TYPE(datatype) KEYVAL(type_keyval),
  )

W(Keyval_create, (MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn, int *keyval, void *extra_state),
  (copy_fn, delete_fn, keyval, extra_state),
  FUNCTION(copy_fn) FUNCTION(delete_fn) VALUE(extra_state),
  NEW_KEYVAL(keyval))

W(Keyval_free, (int *keyval),
  (keyval),
  int old = *keyval; KEYVAL_AT(keyval),
  FREED(KEYVAL, old))

W(Attr_put, (MPI_Comm comm, int keyval, void *attribute_val),
  (comm, keyval, attribute_val),
  COMM(comm) KEYVAL(keyval) VALUE(attribute_val),
  )

W(Attr_get, (MPI_Comm comm, int keyval, void *attribute_val, int *flag),
  (comm, keyval, attribute_val, flag),
  COMM(comm) KEYVAL(keyval),
  OUT_BOOL(flag) IF(*flag) OUT_POINTER(attribute_val))

W(Attr_delete, (MPI_Comm comm, int keyval),
  (comm, keyval),
  COMM(comm) KEYVAL(keyval),
  )

W(Comm_create_errhandler, (MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler),
  (comm_errhandler_fn, errhandler),
  FUNCTION(comm_errhandler_fn),
  NEW_ERRH(errhandler))

W(Add_error_class, (int *errorclass),
  (errorclass),
  ,
  OUT_INT(errorclass))

W(Add_error_code, (int errorclass, int *errorcode),
  (errorclass, errorcode),
  ENUM(errorclass, ERROR_CLASSES),
  OUT_INT(errorcode))

W(Add_error_string, (int errorcode, const char *string),
  (errorcode, string),
  INT(errorcode) STRING(string),
  )

W(Grequest_start, (MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
 MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request),
  (query_fn, free_fn, cancel_fn, extra_state, request),
  FUNCTION(query_fn) FUNCTION(free_fn) FUNCTION(cancel_fn) VALUE(extra_state),
  NEW_REQ(request))

W(Grequest_complete, (MPI_Request request),
  (request),
  REQ_VALUE(request),
  )

W(Status_set_elements, (MPI_Status *status, MPI_Datatype datatype, int count),
  (status, datatype, count),
  TYPE(datatype) INT(count),
  STATUS_OUT(status))

W(Status_set_elements_x, (MPI_Status *status, MPI_Datatype datatype, MPI_Count count),
  (status, datatype, count),
  TYPE(datatype) INT(count),
  STATUS_OUT(status))

W(Status_set_cancelled, (MPI_Status *status, int flag),
  (status, flag),
  BOOL(flag),
  STATUS_OUT(status))

#ifndef OPEN_MPI
/* Open MPI's are macros. */
WATCH(MPI_Aint, Aint_add, (MPI_Aint base, MPI_Aint disp), (base, disp), INT(base) INT(disp), , NUMBER)
WATCH(MPI_Aint, Aint_diff, (MPI_Aint addr1, MPI_Aint addr2), (addr1, addr2), INT(addr1) INT(addr2), , NUMBER)
#endif
