/* Files themselves: opening, sizes, views, pointers, infos, representations, and errors. They lie in the working
 * directory. */
#include "common.h"

static MPI_File fh;

static void open_it(const char *name, int mode, MPI_Info info)
{
    MPI_File_open(MPI_COMM_WORLD, name, mode, info, &fh);
}

static void close_it(const char *name)
{
    MPI_File_close(&fh);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_File_delete(name, MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What was written by all is read by all. */
static void settle(void)
{
    MPI_File_sync(fh);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(fh);
}

/* Nobody changes it again before all have seen it. */
static void see_size(int unit)
{
    MPI_Offset bytes;
    MPI_File_get_size(fh, &bytes);
    see((int[]){(int)(bytes / unit)}, 1);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sizes(void)
{
    MPI_Aint extent;
    MPI_Group group, world;
    MPI_Info info, used;
    int mode, n, same, flag;
    char value[64];
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    open_it("sizes.dat", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN, info);
    MPI_File_set_size(fh, 1000);
    see_size(1);
    /* No more than there is: a rank of Open MPI 4.1 that comes late to a file that has grown leaves out a broadcast. */
    MPI_File_preallocate(fh, 500);
    see_size(1);
    MPI_File_set_size(fh, (MPI_Offset)5 << 30);
    see_size(1 << 20);
    MPI_File_set_size(fh, 10);
    MPI_File_get_amode(fh, &mode);
    same = mode == (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN);
    see(&same, 1);
    MPI_File_get_group(fh, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &same);
    MPI_Group_size(group, &n);
    see(&n, 1);
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    MPI_Info_set(info, "access_style", "write_once");
    MPI_File_set_info(fh, info);
    MPI_File_get_info(fh, &used);
    MPI_Info_get(used, "cb_buffer_size", 63, value, &flag);
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    MPI_File_get_type_extent(fh, MPI_DOUBLE, &extent);
    see((int[]){(int)extent}, 1);
#if MPI_VERSION >= 4
    MPI_Count large;
    MPI_File_get_type_extent_c(fh, MPI_INT, &large);
    see((int[]){(int)large}, 1);
#endif
    MPI_File_get_atomicity(fh, &flag);
    MPI_File_set_atomicity(fh, 1);
    MPI_File_get_atomicity(fh, &flag);
    MPI_File_set_atomicity(fh, 0);
    MPI_File_sync(fh);
    close_it("sizes.dat");
}

/* Each rank sees every size-th block of the file, behind a header. */
static void views(void)
{
    enum { BLOCK = 3, BLOCKS = 4, HEADER = 16 };
    int out[BLOCK * BLOCKS], in[BLOCK * BLOCKS] = {0};
    MPI_Datatype block, stripe, etype, filetype;
    MPI_Offset disp, place;
    MPI_Status status;
    char datarep[MPI_MAX_DATAREP_STRING];
    for (int i = 0; i < BLOCK * BLOCKS; i++)
        out[i] = 100 * rank + i;
    MPI_Type_contiguous(BLOCK, MPI_INT, &block);
    MPI_Type_commit(&block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)(BLOCK * size * sizeof(int)), &stripe);
    MPI_Type_commit(&stripe);
    open_it("views.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_File_get_view(fh, &disp, &etype, &filetype, datarep);
    MPI_File_set_view(fh, HEADER + (MPI_Offset)(rank * BLOCK * sizeof(int)), MPI_INT, stripe, "native", MPI_INFO_NULL);
    MPI_File_write_all(fh, out, BLOCK * BLOCKS, MPI_INT, &status);
    settle();
    MPI_File_get_position(fh, &place);
    see((int[]){(int)place}, 1);
    MPI_File_get_byte_offset(fh, 4, &disp);
    see((int[]){(int)disp}, 1);
    MPI_File_get_byte_offset(fh, place, &disp);
    see((int[]){(int)disp}, 1);
    MPI_File_seek(fh, 1, MPI_SEEK_SET);
    MPI_File_read(fh, in, BLOCK, MPI_INT, &status);
    see(in, BLOCK);
    MPI_File_seek(fh, -2, MPI_SEEK_CUR);
    MPI_File_get_position(fh, &place);
    see((int[]){(int)place}, 1);
    MPI_File_seek(fh, 0, MPI_SEEK_END);
    MPI_File_get_view(fh, &disp, &etype, &filetype, datarep);
    see((int[]){(int)disp, (int)strlen(datarep)}, 2);
    MPI_Type_free(&filetype);
    /* An etype that is not predefined. */
    MPI_File_set_view(fh, HEADER, block, block, "native", MPI_INFO_NULL);
    MPI_File_get_view(fh, &disp, &etype, &filetype, datarep);
    MPI_Type_free(&etype);
    MPI_Type_free(&filetype);
    MPI_File_read_at_all(fh, rank, in, 1, block, &status);
    see(in, BLOCK);
    MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_seek_shared(fh, 2, MPI_SEEK_SET);
    MPI_File_get_position_shared(fh, &place);
    see((int[]){(int)place}, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(fh, 1, MPI_SEEK_CUR);
    MPI_File_get_position_shared(fh, &place);
    MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
    MPI_File_get_view(fh, &disp, &etype, &filetype, datarep);
    close_it("views.dat");
    MPI_Type_free(&stripe);
    MPI_Type_free(&block);
}

/* A file that is read and written from its start to its end. */
static void sequential(void)
{
    MPI_Status status;
    int in = 0;
    open_it("tape.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL);
    MPI_File_write_ordered(fh, &rank, 1, MPI_INT, &status);
    MPI_File_set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_close(&fh);
    open_it("tape.dat", MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL);
    MPI_File_close(&fh);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_SELF, "tape.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);
    MPI_File_read_at(fh, (MPI_Offset)((size - 1) * sizeof(int)), &in, 1, MPI_INT, &status);
    see(&in, 1);
    MPI_File_close(&fh);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_File_delete("tape.dat", MPI_INFO_NULL);
}

static int same_extent(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    (void)state;
    MPI_Aint lb;
    return PMPI_Type_get_extent(type, &lb, extent);
}

static void representations(void)
{
    static int state;
    int bad;
    MPI_Register_datarep("own", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, same_extent, NULL);
#if MPI_VERSION >= 4
    MPI_Register_datarep_c("own_large", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, same_extent, &state);
#else
    (void)state;
#endif
    open_it("representations.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
    bad = MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "nobody's", MPI_INFO_NULL) != MPI_SUCCESS;
    see(&bad, 1);
    close_it("representations.dat");
}

static int complaints;

static void complain(MPI_File *file, int *code, ...)
{
    (void)file;
    (void)code;
    complaints++;
}

static void errors(void)
{
    MPI_Errhandler before, own, again;
    int code, class, is[4], in = 0;
    MPI_Status status;
    char text[MPI_MAX_ERROR_STRING];
    MPI_File_get_errhandler(MPI_FILE_NULL, &before);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    code = MPI_File_open(MPI_COMM_WORLD, "there/is/no such \"file\"", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);
    MPI_Error_class(code, &class);
    is[0] = class == MPI_ERR_NO_SUCH_FILE;
    code = MPI_File_delete("nowhere.dat", MPI_INFO_NULL);
    MPI_Error_class(code, &class);
    is[1] = class == MPI_ERR_NO_SUCH_FILE;
    MPI_Error_string(code, text, &in);
    code = MPI_File_open(MPI_COMM_SELF, "both.dat", MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh);
    MPI_Error_class(code, &class);
    is[2] = class == MPI_ERR_AMODE;
    open_it("errors.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL);
    code = MPI_File_read_at(fh, 0, &in, 1, MPI_INT, &status);
    is[3] = code != MPI_SUCCESS;
    see(is, 4);
    code = MPI_File_write_at(fh, -4, &in, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    MPI_File_create_errhandler(complain, &own);
    MPI_File_set_errhandler(fh, own);
    MPI_File_get_errhandler(fh, &again);
    MPI_Errhandler_free(&again);
    MPI_File_call_errhandler(fh, MPI_ERR_OTHER);
    see(&complaints, 1);
    MPI_Errhandler_free(&own);
    close_it("errors.dat");
    MPI_File_set_errhandler(MPI_FILE_NULL, before);
    MPI_Errhandler_free(&before);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    sizes();
    views();
    sequential();
    representations();
    errors();
    finish("files");
}
