/* Windows and one-sided communication. `_c` forms differ from the plain ones in the type of their counts. */
#include "witness.h"

static const struct constant LOCKS[] = {
    {MPI_LOCK_EXCLUSIVE, "MPI_LOCK_EXCLUSIVE"}, {MPI_LOCK_SHARED, "MPI_LOCK_SHARED"}, {0, NULL}};
static const struct constant ASSERTIONS[] = {{MPI_MODE_NOCHECK, "MPI_MODE_NOCHECK"},
                                             {MPI_MODE_NOSTORE, "MPI_MODE_NOSTORE"},
                                             {MPI_MODE_NOPUT, "MPI_MODE_NOPUT"},
                                             {MPI_MODE_NOPRECEDE, "MPI_MODE_NOPRECEDE"},
                                             {MPI_MODE_NOSUCCEED, "MPI_MODE_NOSUCCEED"},
                                             {0, NULL}};
#define ASSERTION(x) SLOT(x, put_mask(x, ASSERTIONS))

#define ORIGIN BUF(origin_addr) INT(origin_count) TYPE(origin_datatype)
#define RESULT BUF(result_addr) INT(result_count) TYPE(result_datatype)
#define TARGET PEER(target_rank) INT(target_disp) INT(target_count) TYPE(target_datatype)

#define MAKE(c, unit_t)                                                                                             \
    W(Win_create##c, (void *base, MPI_Aint size, unit_t disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),     \
      (base, size, disp_unit, info, comm, win),                                                                     \
      BUF(base) INT(size) INT(disp_unit) INFO(info) COMM(comm),                                                     \
      NEW_WIN(win))                                                                                                 \
                                                                                                                    \
    W(Win_allocate##c, (MPI_Aint size, unit_t disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win), \
      (size, disp_unit, info, comm, baseptr, win),                                                                  \
      INT(size) INT(disp_unit) INFO(info) COMM(comm),                                                               \
      OUT_POINTER(baseptr) NEW_WIN(win))                                                                            \
                                                                                                                    \
    W(Win_allocate_shared##c,                                                                                       \
      (MPI_Aint size, unit_t disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),                 \
      (size, disp_unit, info, comm, baseptr, win),                                                                  \
      INT(size) INT(disp_unit) INFO(info) COMM(comm),                                                               \
      OUT_POINTER(baseptr) NEW_WIN(win))                                                                            \
                                                                                                                    \
    W(Win_shared_query##c, (MPI_Win win, int rank, MPI_Aint *size, unit_t *disp_unit, void *baseptr),               \
      (win, rank, size, disp_unit, baseptr),                                                                        \
      WIN(win) PEER(rank),                                                                                          \
      OUT_INT(size) OUT_INT(disp_unit) OUT_POINTER(baseptr))

#define MOVE(c, count_t)                                                                                            \
    W(Put##c, (const void *origin_addr, count_t origin_count, MPI_Datatype origin_datatype, int target_rank,        \
       MPI_Aint target_disp, count_t target_count, MPI_Datatype target_datatype, MPI_Win win),                      \
      (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win),   \
      ORIGIN TARGET WIN(win), )                                                                                     \
                                                                                                                    \
    W(Rput##c, (const void *origin_addr, count_t origin_count, MPI_Datatype origin_datatype, int target_rank,       \
       MPI_Aint target_disp, count_t target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request), \
      (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win,    \
       request),                                                                                                    \
      ORIGIN TARGET WIN(win), NEW_REQ(request))                                                                     \
                                                                                                                    \
    W(Get##c, (void *origin_addr, count_t origin_count, MPI_Datatype origin_datatype, int target_rank,              \
       MPI_Aint target_disp, count_t target_count, MPI_Datatype target_datatype, MPI_Win win),                      \
      (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win),   \
      ORIGIN TARGET WIN(win), )                                                                                     \
                                                                                                                    \
    W(Rget##c, (void *origin_addr, count_t origin_count, MPI_Datatype origin_datatype, int target_rank,             \
       MPI_Aint target_disp, count_t target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request), \
      (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win,    \
       request),                                                                                                    \
      ORIGIN TARGET WIN(win), NEW_REQ(request))                                                                     \
                                                                                                                    \
    W(Accumulate##c, (const void *origin_addr, count_t origin_count, MPI_Datatype origin_datatype, int target_rank, \
       MPI_Aint target_disp, count_t target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),           \
      (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op,     \
       win),                                                                                                        \
      ORIGIN TARGET OP(op) WIN(win), )                                                                              \
                                                                                                                    \
    W(Raccumulate##c, (const void *origin_addr, count_t origin_count, MPI_Datatype origin_datatype, int target_rank, \
       MPI_Aint target_disp, count_t target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,            \
       MPI_Request *request),                                                                                       \
      (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op,     \
       win, request),                                                                                               \
      ORIGIN TARGET OP(op) WIN(win), NEW_REQ(request))                                                              \
                                                                                                                    \
    W(Get_accumulate##c, (const void *origin_addr, count_t origin_count, MPI_Datatype origin_datatype,              \
       void *result_addr, count_t result_count, MPI_Datatype result_datatype, int target_rank,                      \
       MPI_Aint target_disp, count_t target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),           \
      (origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank,         \
       target_disp, target_count, target_datatype, op, win),                                                        \
      ORIGIN RESULT TARGET OP(op) WIN(win), )                                                                       \
                                                                                                                    \
    W(Rget_accumulate##c, (const void *origin_addr, count_t origin_count, MPI_Datatype origin_datatype,             \
       void *result_addr, count_t result_count, MPI_Datatype result_datatype, int target_rank,                      \
       MPI_Aint target_disp, count_t target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,            \
       MPI_Request *request),                                                                                       \
      (origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank,         \
       target_disp, target_count, target_datatype, op, win, request),                                               \
      ORIGIN RESULT TARGET OP(op) WIN(win), NEW_REQ(request))

MAKE(, int)
MOVE(, int)
#if MPI_VERSION >= 4
MAKE(_c, MPI_Aint)
MOVE(_c, MPI_Count)
#endif

W(Fetch_and_op, (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
 MPI_Aint target_disp, MPI_Op op, MPI_Win win),
  (origin_addr, result_addr, datatype, target_rank, target_disp, op, win),
  BUF(origin_addr) BUF(result_addr) TYPE(datatype) PEER(target_rank) INT(target_disp) OP(op) WIN(win),
  )

W(Compare_and_swap, (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype,
 int target_rank, MPI_Aint target_disp, MPI_Win win),
  (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win),
  BUF(origin_addr) BUF(compare_addr) BUF(result_addr) TYPE(datatype) PEER(target_rank) INT(target_disp) WIN(win),
  )

W(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win),
  (info, comm, win),
  INFO(info) COMM(comm),
  NEW_WIN(win))

W(Win_attach, (MPI_Win win, void *base, MPI_Aint size),
  (win, base, size),
  WIN(win) BUF(base) INT(size),
  )

W(Win_detach, (MPI_Win win, const void *base),
  (win, base),
  WIN(win) BUF(base),
  )

W(Win_free, (MPI_Win *win),
  (win),
  MPI_Win old = *win; WIN_AT(win),
  FREED(WIN, old))

W(Win_fence, (int assert, MPI_Win win),
  (assert, win),
  ASSERTION(assert) WIN(win),
  )

W(Win_start, (MPI_Group group, int assert, MPI_Win win),
  (group, assert, win),
  GROUP(group) ASSERTION(assert) WIN(win),
  )

W(Win_post, (MPI_Group group, int assert, MPI_Win win),
  (group, assert, win),
  GROUP(group) ASSERTION(assert) WIN(win),
  )

W(Win_complete, (MPI_Win win),
  (win),
  WIN(win),
  )

W(Win_wait, (MPI_Win win),
  (win),
  WIN(win),
  )

W(Win_test, (MPI_Win win, int *flag),
  (win, flag),
  WIN(win),
  OUT_BOOL(flag))

W(Win_lock, (int lock_type, int rank, int assert, MPI_Win win),
  (lock_type, rank, assert, win),
  ENUM(lock_type, LOCKS) PEER(rank) ASSERTION(assert) WIN(win),
  )

W(Win_unlock, (int rank, MPI_Win win),
  (rank, win),
  PEER(rank) WIN(win),
  )

W(Win_lock_all, (int assert, MPI_Win win),
  (assert, win),
  ASSERTION(assert) WIN(win),
  )

W(Win_unlock_all, (MPI_Win win),
  (win),
  WIN(win),
  )

W(Win_flush, (int rank, MPI_Win win),
  (rank, win),
  PEER(rank) WIN(win),
  )

W(Win_flush_local, (int rank, MPI_Win win),
  (rank, win),
  PEER(rank) WIN(win),
  )

W(Win_flush_all, (MPI_Win win),
  (win),
  WIN(win),
  )

W(Win_flush_local_all, (MPI_Win win),
  (win),
  WIN(win),
  )

W(Win_sync, (MPI_Win win),
  (win),
  WIN(win),
  )

W(Win_get_group, (MPI_Win win, MPI_Group *group),
  (win, group),
  WIN(win),
  NEW_GROUP(group))

W(Win_set_info, (MPI_Win win, MPI_Info info),
  (win, info),
  WIN(win) INFO(info),
  )

W(Win_get_info, (MPI_Win win, MPI_Info *info_used),
  (win, info_used),
  WIN(win),
  NEW_INFO(info_used))

W(Win_set_name, (MPI_Win win, const char *win_name),
  (win, win_name),
  WIN(win) STRING(win_name),
  )

W(Win_get_name, (MPI_Win win, char *win_name, int *resultlen),
  (win, win_name, resultlen),
  WIN(win),
  OUT_STRING(win_name) OUT_INT(resultlen))

W(Win_create_keyval, (MPI_Win_copy_attr_function *win_copy_attr_fn, MPI_Win_delete_attr_function *win_delete_attr_fn,
 int *win_keyval, void *extra_state),
  (win_copy_attr_fn, win_delete_attr_fn, win_keyval, extra_state),
  FUNCTION(win_copy_attr_fn) FUNCTION(win_delete_attr_fn) VALUE(extra_state),
  NEW_KEYVAL(win_keyval))

W(Win_free_keyval, (int *win_keyval),
  (win_keyval),
  int old = *win_keyval; KEYVAL_AT(win_keyval),
  FREED(KEYVAL, old))

W(Win_set_attr, (MPI_Win win, int win_keyval, void *attribute_val),
  (win, win_keyval, attribute_val),
  WIN(win) KEYVAL(win_keyval) VALUE(attribute_val),
  )

W(Win_get_attr, (MPI_Win win, int win_keyval, void *attribute_val, int *flag),
  (win, win_keyval, attribute_val, flag),
  WIN(win) KEYVAL(win_keyval),
  OUT_BOOL(flag) IF(*flag) OUT_POINTER(attribute_val))

W(Win_delete_attr, (MPI_Win win, int win_keyval),
  (win, win_keyval),
  WIN(win) KEYVAL(win_keyval),
  )

W(Win_create_errhandler, (MPI_Win_errhandler_function *win_errhandler_fn, MPI_Errhandler *errhandler),
  (win_errhandler_fn, errhandler),
  FUNCTION(win_errhandler_fn),
  NEW_ERRH(errhandler))

W(Win_set_errhandler, (MPI_Win win, MPI_Errhandler errhandler),
  (win, errhandler),
  WIN(win) ERRH(errhandler),
  )

W(Win_get_errhandler, (MPI_Win win, MPI_Errhandler *errhandler),
  (win, errhandler),
  WIN(win),
  NEW_ERRH(errhandler))

W(Win_call_errhandler, (MPI_Win win, int errorcode),
  (win, errorcode),
  WIN(win) INT(errorcode),
  )
