/* The tool interface. Its objects are not MPI's: handles of its own kinds, known by their value. */
#include "witness.h"

#include <string.h>

static const struct constant VERBOSITIES[] = {{MPI_T_VERBOSITY_USER_BASIC, "MPI_T_VERBOSITY_USER_BASIC"},
                                              {MPI_T_VERBOSITY_USER_DETAIL, "MPI_T_VERBOSITY_USER_DETAIL"},
                                              {MPI_T_VERBOSITY_USER_ALL, "MPI_T_VERBOSITY_USER_ALL"},
                                              {MPI_T_VERBOSITY_TUNER_BASIC, "MPI_T_VERBOSITY_TUNER_BASIC"},
                                              {MPI_T_VERBOSITY_TUNER_DETAIL, "MPI_T_VERBOSITY_TUNER_DETAIL"},
                                              {MPI_T_VERBOSITY_TUNER_ALL, "MPI_T_VERBOSITY_TUNER_ALL"},
                                              {MPI_T_VERBOSITY_MPIDEV_BASIC, "MPI_T_VERBOSITY_MPIDEV_BASIC"},
                                              {MPI_T_VERBOSITY_MPIDEV_DETAIL, "MPI_T_VERBOSITY_MPIDEV_DETAIL"},
                                              {MPI_T_VERBOSITY_MPIDEV_ALL, "MPI_T_VERBOSITY_MPIDEV_ALL"},
                                              {0, NULL}};
static const struct constant BINDS[] = {{MPI_T_BIND_NO_OBJECT, "MPI_T_BIND_NO_OBJECT"},
                                        {MPI_T_BIND_MPI_COMM, "MPI_T_BIND_MPI_COMM"},
                                        {0, NULL}};
static const struct constant SCOPES[] = {{MPI_T_SCOPE_CONSTANT, "MPI_T_SCOPE_CONSTANT"},
                                         {MPI_T_SCOPE_READONLY, "MPI_T_SCOPE_READONLY"},
                                         {MPI_T_SCOPE_LOCAL, "MPI_T_SCOPE_LOCAL"},
                                         {MPI_T_SCOPE_GROUP, "MPI_T_SCOPE_GROUP"},
                                         {MPI_T_SCOPE_GROUP_EQ, "MPI_T_SCOPE_GROUP_EQ"},
                                         {MPI_T_SCOPE_ALL, "MPI_T_SCOPE_ALL"},
                                         {MPI_T_SCOPE_ALL_EQ, "MPI_T_SCOPE_ALL_EQ"},
                                         {0, NULL}};
static const struct constant CLASSES[] = {{MPI_T_PVAR_CLASS_STATE, "MPI_T_PVAR_CLASS_STATE"},
                                          {MPI_T_PVAR_CLASS_LEVEL, "MPI_T_PVAR_CLASS_LEVEL"},
                                          {MPI_T_PVAR_CLASS_SIZE, "MPI_T_PVAR_CLASS_SIZE"},
                                          {MPI_T_PVAR_CLASS_PERCENTAGE, "MPI_T_PVAR_CLASS_PERCENTAGE"},
                                          {MPI_T_PVAR_CLASS_HIGHWATERMARK, "MPI_T_PVAR_CLASS_HIGHWATERMARK"},
                                          {MPI_T_PVAR_CLASS_LOWWATERMARK, "MPI_T_PVAR_CLASS_LOWWATERMARK"},
                                          {MPI_T_PVAR_CLASS_COUNTER, "MPI_T_PVAR_CLASS_COUNTER"},
                                          {MPI_T_PVAR_CLASS_AGGREGATE, "MPI_T_PVAR_CLASS_AGGREGATE"},
                                          {MPI_T_PVAR_CLASS_TIMER, "MPI_T_PVAR_CLASS_TIMER"},
                                          {MPI_T_PVAR_CLASS_GENERIC, "MPI_T_PVAR_CLASS_GENERIC"},
                                          {0, NULL}};

/* A string and its length: room before, what there was with its NUL after. */
#define ROOM(x) int x##_before = *(x);
#define TEXT(x, length) OUT(x, put_string(x, (int)strnlen(x, (size_t)(length##_before))))
#define ENUMTYPE(x)                                                                                                 \
    OUT(x, *(x) == MPI_T_ENUM_NULL ? put("\"MPI_T_ENUM_NULL\"") : put_tool_enum(HANDLE(*(x))))

static void put_tool_enum(uintptr_t handle)
{
    if (known_object(TOOL_ENUM, handle))
        put_object(TOOL_ENUM, handle);
    else
        put_new_object(TOOL_ENUM, handle);
}

W(T_init_thread, (int required, int *provided),
  (required, provided),
  ENUM(required, THREAD_LEVELS),
  OUT_ENUM(provided, THREAD_LEVELS))

W(T_finalize, (void),
  (),
  ,
  )

#define NUMBER_OF(name, out)                                                                                        \
    W(name, (int *out),                                                                                             \
      (out),                                                                                                        \
      ,                                                                                                             \
      OUT_INT(out))
NUMBER_OF(T_cvar_get_num, num_cvar)
NUMBER_OF(T_pvar_get_num, num_pvar)
NUMBER_OF(T_category_get_num, num_cat)
NUMBER_OF(T_category_changed, update_number)

W(T_cvar_get_info, (int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype,
 MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope),
  (cvar_index, name, name_len, verbosity, datatype, enumtype, desc, desc_len, bind, scope),
  INT(cvar_index) ROOM(name_len) ROOM(desc_len),
  TEXT(name, name_len) INOUT_INT(name_len) OUT_ENUM(verbosity, VERBOSITIES) OUT_TYPE(datatype) ENUMTYPE(enumtype)
   TEXT(desc, desc_len) INOUT_INT(desc_len) OUT_ENUM(bind, BINDS) OUT_ENUM(scope, SCOPES))

W(T_cvar_get_index, (const char *name, int *cvar_index),
  (name, cvar_index),
  STRING(name),
  OUT_INT(cvar_index))

W(T_cvar_handle_alloc, (int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count),
  (cvar_index, obj_handle, handle, count),
  INT(cvar_index) BUF(obj_handle),
  OUT(handle, put_new_object(TOOL_CVAR, HANDLE(*handle))) OUT_INT(count))

W(T_cvar_handle_free, (MPI_T_cvar_handle *handle),
  (handle),
  MPI_T_cvar_handle old = *handle; SLOT(handle, put_object(TOOL_CVAR, HANDLE(old))),
  FREED(TOOL_CVAR, old))

W(T_cvar_read, (MPI_T_cvar_handle handle, void *buf),
  (handle, buf),
  SLOT(handle, put_object(TOOL_CVAR, HANDLE(handle))) BUF(buf),
  )

W(T_cvar_write, (MPI_T_cvar_handle handle, const void *buf),
  (handle, buf),
  SLOT(handle, put_object(TOOL_CVAR, HANDLE(handle))) BUF(buf),
  )

W(T_category_get_info, (int cat_index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars,
 int *num_pvars, int *num_categories),
  (cat_index, name, name_len, desc, desc_len, num_cvars, num_pvars, num_categories),
  INT(cat_index) ROOM(name_len) ROOM(desc_len),
  TEXT(name, name_len) INOUT_INT(name_len) TEXT(desc, desc_len) INOUT_INT(desc_len) OUT_INT(num_cvars)
   OUT_INT(num_pvars) OUT_INT(num_categories))

W(T_category_get_index, (const char *name, int *cat_index),
  (name, cat_index),
  STRING(name),
  OUT_INT(cat_index))

#define MEMBERS(name)                                                                                               \
    W(name, (int cat_index, int len, int indices[]),                                                                \
      (cat_index, len, indices),                                                                                    \
      INT(cat_index) INT(len),                                                                                      \
      OUT_INTS(indices, of_category(cat_index, #name, len)))
MEMBERS(T_category_get_cvars)
MEMBERS(T_category_get_pvars)
MEMBERS(T_category_get_categories)

W(T_pvar_get_index, (const char *name, int var_class, int *pvar_index),
  (name, var_class, pvar_index),
  STRING(name) ENUM(var_class, CLASSES),
  OUT_INT(pvar_index))

W(T_pvar_session_create, (MPI_T_pvar_session *session),
  (session),
  ,
  OUT(session, put_new_object(TOOL_SESSION, HANDLE(*session))))

W(T_pvar_session_free, (MPI_T_pvar_session *session),
  (session),
  MPI_T_pvar_session old = *session; SLOT(session, put_object(TOOL_SESSION, HANDLE(old))),
  FREED(TOOL_SESSION, old))

#ifdef OPEN_MPI
/* Debian's MPICH has neither performance variables nor enumerations to ask about. */
W(T_enum_get_info, (MPI_T_enum enumtype, int *num, char *name, int *name_len),
  (enumtype, num, name, name_len),
  SLOT(enumtype, put_object(TOOL_ENUM, HANDLE(enumtype))) ROOM(name_len),
  OUT_INT(num) TEXT(name, name_len) INOUT_INT(name_len))

W(T_enum_get_item, (MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len),
  (enumtype, indx, value, name, name_len),
  SLOT(enumtype, put_object(TOOL_ENUM, HANDLE(enumtype))) INT(indx) ROOM(name_len),
  OUT_INT(value) TEXT(name, name_len) INOUT_INT(name_len))

W(T_pvar_get_info, (int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
 MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *readonly, int *continuous,
 int *atomic),
  (pvar_index, name, name_len, verbosity, var_class, datatype, enumtype, desc, desc_len, bind, readonly, continuous,
   atomic),
  INT(pvar_index) ROOM(name_len) ROOM(desc_len),
  TEXT(name, name_len) INOUT_INT(name_len) OUT_ENUM(verbosity, VERBOSITIES) OUT_ENUM(var_class, CLASSES)
   OUT_TYPE(datatype) ENUMTYPE(enumtype) TEXT(desc, desc_len) INOUT_INT(desc_len) OUT_ENUM(bind, BINDS)
   OUT_BOOL(readonly) OUT_BOOL(continuous) OUT_BOOL(atomic))

W(T_pvar_handle_alloc, (MPI_T_pvar_session session, int pvar_index, void *obj_handle, MPI_T_pvar_handle *handle,
 int *count),
  (session, pvar_index, obj_handle, handle, count),
  SLOT(session, put_object(TOOL_SESSION, HANDLE(session))) INT(pvar_index) BUF(obj_handle),
  OUT(handle, put_new_object(TOOL_PVAR, HANDLE(*handle))) OUT_INT(count))

W(T_pvar_handle_free, (MPI_T_pvar_session session, MPI_T_pvar_handle *handle),
  (session, handle),
  MPI_T_pvar_handle old = *handle; SLOT(session, put_object(TOOL_SESSION, HANDLE(session)))
   SLOT(handle, put_object(TOOL_PVAR, HANDLE(old))),
  FREED(TOOL_PVAR, old))

#define ON_PVAR(name)                                                                                               \
    W(name, (MPI_T_pvar_session session, MPI_T_pvar_handle handle),                                                 \
      (session, handle),                                                                                            \
      SLOT(session, put_object(TOOL_SESSION, HANDLE(session))) SLOT(handle, put_object(TOOL_PVAR, HANDLE(handle))), \
      )
ON_PVAR(T_pvar_start)
ON_PVAR(T_pvar_stop)
ON_PVAR(T_pvar_reset)

#define WITH_PVAR(name, type)                                                                                       \
    W(name, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, type *buf),                                      \
      (session, handle, buf),                                                                                       \
      SLOT(session, put_object(TOOL_SESSION, HANDLE(session))) SLOT(handle, put_object(TOOL_PVAR, HANDLE(handle)))  \
       BUF(buf),                                                                                                    \
      )
WITH_PVAR(T_pvar_read, void)
WITH_PVAR(T_pvar_readreset, void)
WITH_PVAR(T_pvar_write, const void)
#else
NUMBER_OF(T_event_get_num, num_events)
NUMBER_OF(T_source_get_num, num_sources)

W(T_event_get_index, (const char *name, int *event_index),
  (name, event_index),
  STRING(name),
  OUT_INT(event_index))

W(T_category_get_num_events, (int cat_index, int *num_events),
  (cat_index, num_events),
  INT(cat_index),
  OUT_INT(num_events))

MEMBERS(T_category_get_events)
#endif
