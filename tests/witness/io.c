/* Files. `_c` forms differ from the plain ones in the type of their counts. */
#include "witness.h"

static const struct constant ACCESS[] = {{MPI_MODE_CREATE, "MPI_MODE_CREATE"},
                                         {MPI_MODE_RDONLY, "MPI_MODE_RDONLY"},
                                         {MPI_MODE_WRONLY, "MPI_MODE_WRONLY"},
                                         {MPI_MODE_RDWR, "MPI_MODE_RDWR"},
                                         {MPI_MODE_DELETE_ON_CLOSE, "MPI_MODE_DELETE_ON_CLOSE"},
                                         {MPI_MODE_UNIQUE_OPEN, "MPI_MODE_UNIQUE_OPEN"},
                                         {MPI_MODE_EXCL, "MPI_MODE_EXCL"},
                                         {MPI_MODE_APPEND, "MPI_MODE_APPEND"},
                                         {MPI_MODE_SEQUENTIAL, "MPI_MODE_SEQUENTIAL"},
                                         {0, NULL}};
static const struct constant WHENCE[] = {
    {MPI_SEEK_SET, "MPI_SEEK_SET"}, {MPI_SEEK_CUR, "MPI_SEEK_CUR"}, {MPI_SEEK_END, "MPI_SEEK_END"}, {0, NULL}};

#define FH FILE_HANDLE(fh)
#define DATA BUF(buf) INT(count) TYPE(datatype)

/* A file's status says how much was moved; it has no source and no tag. */
#define IO_STATUS(x)                                                                                                \
    slot(#x);                                                                                                       \
    if ((x) == MPI_STATUS_IGNORE)                                                                                   \
        put(witness_ok ? "\"MPI_STATUS_IGNORE\"" : "{\"maybe\":\"MPI_STATUS_IGNORE\"}");                            \
    else if (witness_ok) {                                                                                          \
        MPI_Count bytes = -1;                                                                                       \
        ASK(MPI_Get_elements_x, x, MPI_BYTE, &bytes);                                                               \
        put("{\"bytes\":%lld}", (long long)bytes);                                                                  \
    } else                                                                                                          \
        put("null");

/* The copy of a derived type is the program's to free. */
static void put_view_type(MPI_Datatype type)
{
    int integers, addresses, types, combiner;
    ASK(MPI_Type_get_envelope, type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED)
        put_type(type);
    else
        put_new_object(TYPE, HANDLE(type));
}

/* Where the data lies in the file: at the file pointer, or where the call says. */
#define AT_POINTER(c, count_t, name, in_t)                                                                          \
    W(name##c, (MPI_File fh, in_t buf, count_t count, MPI_Datatype datatype, MPI_Status *status),                   \
      (fh, buf, count, datatype, status),                                                                           \
      FH DATA, IO_STATUS(status))
#define AT_OFFSET(c, count_t, name, in_t)                                                                           \
    W(name##c, (MPI_File fh, MPI_Offset offset, in_t buf, count_t count, MPI_Datatype datatype, MPI_Status *status), \
      (fh, offset, buf, count, datatype, status),                                                                   \
      FH INT(offset) DATA, IO_STATUS(status))
#define I_AT_POINTER(c, count_t, name, in_t)                                                                        \
    W(name##c, (MPI_File fh, in_t buf, count_t count, MPI_Datatype datatype, MPI_Request *request),                 \
      (fh, buf, count, datatype, request),                                                                          \
      FH DATA, NEW_REQ(request))
#define I_AT_OFFSET(c, count_t, name, in_t)                                                                         \
    W(name##c, (MPI_File fh, MPI_Offset offset, in_t buf, count_t count, MPI_Datatype datatype,                     \
       MPI_Request *request),                                                                                       \
      (fh, offset, buf, count, datatype, request),                                                                  \
      FH INT(offset) DATA, NEW_REQ(request))
#define BEGIN_AT_POINTER(c, count_t, name, in_t)                                                                    \
    W(name##c, (MPI_File fh, in_t buf, count_t count, MPI_Datatype datatype),                                       \
      (fh, buf, count, datatype),                                                                                   \
      FH DATA, )
#define BEGIN_AT_OFFSET(c, count_t, name, in_t)                                                                     \
    W(name##c, (MPI_File fh, MPI_Offset offset, in_t buf, count_t count, MPI_Datatype datatype),                    \
      (fh, offset, buf, count, datatype),                                                                           \
      FH INT(offset) DATA, )
#define END(name, in_t)                                                                                             \
    W(name, (MPI_File fh, in_t buf, MPI_Status *status),                                                            \
      (fh, buf, status),                                                                                            \
      FH BUF(buf), IO_STATUS(status))

#define TRANSFERS(c, count_t)                                                                                       \
    AT_OFFSET(c, count_t, File_read_at, void *)                                                                     \
    AT_OFFSET(c, count_t, File_read_at_all, void *)                                                                 \
    AT_OFFSET(c, count_t, File_write_at, const void *)                                                              \
    AT_OFFSET(c, count_t, File_write_at_all, const void *)                                                          \
    I_AT_OFFSET(c, count_t, File_iread_at, void *)                                                                  \
    I_AT_OFFSET(c, count_t, File_iread_at_all, void *)                                                              \
    I_AT_OFFSET(c, count_t, File_iwrite_at, const void *)                                                           \
    I_AT_OFFSET(c, count_t, File_iwrite_at_all, const void *)                                                       \
    AT_POINTER(c, count_t, File_read, void *)                                                                       \
    AT_POINTER(c, count_t, File_read_all, void *)                                                                   \
    AT_POINTER(c, count_t, File_write, const void *)                                                                \
    AT_POINTER(c, count_t, File_write_all, const void *)                                                            \
    I_AT_POINTER(c, count_t, File_iread, void *)                                                                    \
    I_AT_POINTER(c, count_t, File_iread_all, void *)                                                                \
    I_AT_POINTER(c, count_t, File_iwrite, const void *)                                                             \
    I_AT_POINTER(c, count_t, File_iwrite_all, const void *)                                                         \
    AT_POINTER(c, count_t, File_read_shared, void *)                                                                \
    AT_POINTER(c, count_t, File_write_shared, const void *)                                                         \
    I_AT_POINTER(c, count_t, File_iread_shared, void *)                                                             \
    I_AT_POINTER(c, count_t, File_iwrite_shared, const void *)                                                      \
    AT_POINTER(c, count_t, File_read_ordered, void *)                                                               \
    AT_POINTER(c, count_t, File_write_ordered, const void *)                                                        \
    BEGIN_AT_OFFSET(c, count_t, File_read_at_all_begin, void *)                                                     \
    BEGIN_AT_OFFSET(c, count_t, File_write_at_all_begin, const void *)                                              \
    BEGIN_AT_POINTER(c, count_t, File_read_all_begin, void *)                                                       \
    BEGIN_AT_POINTER(c, count_t, File_write_all_begin, const void *)                                                \
    BEGIN_AT_POINTER(c, count_t, File_read_ordered_begin, void *)                                                   \
    BEGIN_AT_POINTER(c, count_t, File_write_ordered_begin, const void *)

TRANSFERS(, int)
END(File_read_at_all_end, void *)
END(File_write_at_all_end, const void *)
END(File_read_all_end, void *)
END(File_write_all_end, const void *)
END(File_read_ordered_end, void *)
END(File_write_ordered_end, const void *)

W(File_get_type_extent, (MPI_File fh, MPI_Datatype datatype, MPI_Aint *extent),
  (fh, datatype, extent),
  FH TYPE(datatype),
  OUT_INT(extent))

W(Register_datarep, (const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
 MPI_Datarep_conversion_function *write_conversion_fn, MPI_Datarep_extent_function *dtype_file_extent_fn,
 void *extra_state),
  (datarep, read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state),
  STRING(datarep) FUNCTION(read_conversion_fn) FUNCTION(write_conversion_fn) FUNCTION(dtype_file_extent_fn)
   VALUE(extra_state),
  )

#if MPI_VERSION >= 4
TRANSFERS(_c, MPI_Count)

W(File_get_type_extent_c, (MPI_File fh, MPI_Datatype datatype, MPI_Count *extent),
  (fh, datatype, extent),
  FH TYPE(datatype),
  OUT_INT(extent))

W(Register_datarep_c, (const char *datarep, MPI_Datarep_conversion_function_c *read_conversion_fn,
 MPI_Datarep_conversion_function_c *write_conversion_fn, MPI_Datarep_extent_function *dtype_file_extent_fn,
 void *extra_state),
  (datarep, read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state),
  STRING(datarep) FUNCTION(read_conversion_fn) FUNCTION(write_conversion_fn) FUNCTION(dtype_file_extent_fn)
   VALUE(extra_state),
  )
#endif

W(File_open, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh),
  (comm, filename, amode, info, fh),
  COMM(comm) STRING(filename) SLOT(amode, put_mask(amode, ACCESS)) INFO(info),
  NEW_FILE(fh))

W(File_close, (MPI_File *fh),
  (fh),
  MPI_File old = *fh; FILE_AT(fh),
  FREED(FILE_, old))

W(File_delete, (const char *filename, MPI_Info info),
  (filename, info),
  STRING(filename) INFO(info),
  )

W(File_set_size, (MPI_File fh, MPI_Offset size),
  (fh, size),
  FH INT(size),
  )

W(File_preallocate, (MPI_File fh, MPI_Offset size),
  (fh, size),
  FH INT(size),
  )

W(File_get_size, (MPI_File fh, MPI_Offset *size),
  (fh, size),
  FH,
  OUT_INT(size))

W(File_get_group, (MPI_File fh, MPI_Group *group),
  (fh, group),
  FH,
  NEW_GROUP(group))

W(File_get_amode, (MPI_File fh, int *amode),
  (fh, amode),
  FH,
  OUT(amode, put_mask(*amode, ACCESS)))

W(File_set_info, (MPI_File fh, MPI_Info info),
  (fh, info),
  FH INFO(info),
  )

W(File_get_info, (MPI_File fh, MPI_Info *info_used),
  (fh, info_used),
  FH,
  NEW_INFO(info_used))

W(File_set_view, (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
 MPI_Info info),
  (fh, disp, etype, filetype, datarep, info),
  FH SLOT(disp, disp == MPI_DISPLACEMENT_CURRENT ? put("\"MPI_DISPLACEMENT_CURRENT\"") : put_int(disp)) TYPE(etype)
   TYPE(filetype) STRING(datarep) INFO(info),
  )

W(File_get_view, (MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep),
  (fh, disp, etype, filetype, datarep),
  FH,
  OUT_INT(disp) OUT(etype, put_view_type(*etype)) OUT(filetype, put_view_type(*filetype)) OUT_STRING(datarep))

W(File_seek, (MPI_File fh, MPI_Offset offset, int whence),
  (fh, offset, whence),
  FH INT(offset) ENUM(whence, WHENCE),
  )

W(File_seek_shared, (MPI_File fh, MPI_Offset offset, int whence),
  (fh, offset, whence),
  FH INT(offset) ENUM(whence, WHENCE),
  )

W(File_get_position, (MPI_File fh, MPI_Offset *offset),
  (fh, offset),
  FH,
  OUT_INT(offset))

W(File_get_position_shared, (MPI_File fh, MPI_Offset *offset),
  (fh, offset),
  FH,
  OUT_INT(offset))

W(File_get_byte_offset, (MPI_File fh, MPI_Offset offset, MPI_Offset *disp),
  (fh, offset, disp),
  FH INT(offset),
  OUT_INT(disp))

W(File_set_atomicity, (MPI_File fh, int flag),
  (fh, flag),
  FH BOOL(flag),
  )

W(File_get_atomicity, (MPI_File fh, int *flag),
  (fh, flag),
  FH,
  OUT_BOOL(flag))

W(File_sync, (MPI_File fh),
  (fh),
  FH,
  )

W(File_create_errhandler, (MPI_File_errhandler_function *file_errhandler_fn, MPI_Errhandler *errhandler),
  (file_errhandler_fn, errhandler),
  FUNCTION(file_errhandler_fn),
  NEW_ERRH(errhandler))

W(File_set_errhandler, (MPI_File file, MPI_Errhandler errhandler),
  (file, errhandler),
  FILE_HANDLE(file) ERRH(errhandler),
  )

W(File_get_errhandler, (MPI_File file, MPI_Errhandler *errhandler),
  (file, errhandler),
  FILE_HANDLE(file),
  NEW_ERRH(errhandler))

W(File_call_errhandler, (MPI_File fh, int errorcode),
  (fh, errorcode),
  FH INT(errorcode),
  )
