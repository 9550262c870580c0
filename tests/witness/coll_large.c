/* Collectives of MPI 4: the persistent ones, and all forms with counts of type MPI_Count. */
#include "witness.h"

#if MPI_VERSION >= 4

#define COUNT MPI_Count
#define DISP MPI_Aint
#define PARAMS
#define ARGS
#define BEFORE
#define AFTER
#define FORM(Name, name) Name##_c
#include "coll_forms.h"

#undef PARAMS
#undef ARGS
#undef AFTER
#undef FORM
#define PARAMS , MPI_Request *request
#define ARGS , request
#define AFTER NEW_REQ(request)
#define FORM(Name, name) I##name##_c
#include "coll_forms.h"

#undef PARAMS
#undef ARGS
#undef BEFORE
#undef FORM
#define PARAMS , MPI_Info info, MPI_Request *request
#define ARGS , info, request
#define BEFORE INFO(info)
#define FORM(Name, name) Name##_init_c
#include "coll_forms.h"

#undef COUNT
#undef DISP
#undef FORM
#define COUNT int
#define DISP int
#define FORM(Name, name) Name##_init
#include "coll_forms.h"

W(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request),
  (comm, info, request),
  COMM(comm) INFO(info),
  NEW_REQ(request))

W(Reduce_local_c, (const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op),
  (inbuf, inoutbuf, count, datatype, op),
  BUF(inbuf) BUF(inoutbuf) INT(count) TYPE(datatype) OP(op),
  )

W(Op_create_c, (MPI_User_function_c *user_fn, int commute, MPI_Op *op),
  (user_fn, commute, op),
  FUNCTION(user_fn) BOOL(commute),
  NEW_OP(op))

#endif
