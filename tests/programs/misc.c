/* Thread levels, operations, infos, errors that return, names, packing, attributes, clocks. */
#include "common.h"
#include <stdint.h>

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void multiply(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] *= ((int *)in)[i] % 7 + 1;
}

static void operations(void)
{
    MPI_Op ops[2];
    int sum, commutes;
    for (int round = 0; round < 2; round++) {
        MPI_Op_create(add, 1, &ops[0]);
        MPI_Op_create(multiply, 0, &ops[1]);
        MPI_Op_commutative(ops[1], &commutes);
        MPI_Op_commutative(MPI_SUM, &commutes);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, ops[0], MPI_COMM_WORLD);
        see(&sum, 1);
        MPI_Reduce(&rank, &sum, 1, MPI_INT, ops[1], 0, MPI_COMM_WORLD);
        MPI_Scan(&rank, &sum, 1, MPI_INT, ops[0], MPI_COMM_WORLD);
        see(&sum, 1);
        MPI_Op_free(&ops[0]);
        MPI_Op_free(&ops[1]);
    }
}

static void infos(void)
{
    MPI_Info info, copy;
    char value[64], key[MPI_MAX_INFO_KEY];
    int flag, n;
    MPI_Info_create(&info);
    MPI_Info_set(info, "access_style", "read_once,sequential");
    MPI_Info_set(info, "odd \"key\"\n", "tab\tand\\slash");
    MPI_Info_get_nkeys(info, &n);
    see(&n, 1);
    MPI_Info_get_nthkey(info, 0, key);
    MPI_Info_get(info, "access_style", 63, value, &flag);
    see(&flag, 1);
    MPI_Info_get(info, "nowhere", 63, value, &flag);
    see(&flag, 1);
    MPI_Info_get_valuelen(info, "access_style", &n, &flag);
    MPI_Info_get_valuelen(info, "nowhere", &n, &flag);
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "access_style");
    MPI_Comm comm;
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, copy, &comm);
    MPI_Comm_free(&comm);
    MPI_Info_free(&info);
    MPI_Info_free(&copy);
}

/* Calls that fail, and say so. */
static void errors(void)
{
    MPI_Errhandler before;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    char text[MPI_MAX_ERROR_STRING];
    int code, class, length, in[2] = {0}, out[2] = {1, 2}, bad;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Send(out, 1, MPI_INT, size + 5, 90, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    bad = class == MPI_ERR_RANK;
    see(&bad, 1);
    MPI_Error_string(code, text, &length);
    code = MPI_Bcast(out, -1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    MPI_Error_string(MPI_SUCCESS, text, &length);

    MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);

    /* The message is longer than the room for it. */
    MPI_Request send;
    MPI_Isend(out, 2, MPI_INT, rank, 91, MPI_COMM_WORLD, &send);
    code = MPI_Recv(in, 1, MPI_INT, rank, 91, MPI_COMM_WORLD, &statuses[0]);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    bad = class == MPI_ERR_TRUNCATE;
    see(&bad, 1);
    memset(statuses, 0, sizeof statuses);
    MPI_Irecv(in, 1, MPI_INT, rank, 92, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 1, 1, MPI_INT, rank, 93, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(out, 1, MPI_INT, rank, 93, MPI_COMM_WORLD);
    MPI_Send(out, 2, MPI_INT, rank, 92, MPI_COMM_WORLD);
    code = MPI_Waitall(2, requests, statuses);
    MPI_Error_class(code, &class);
    bad = class == MPI_ERR_IN_STATUS;
    see(&bad, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
}

static void packing(void)
{
    char buffer[256];
    int position = 0, bytes, x = rank, y = 0;
    double d = rank * 0.5, e = 0;
    MPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &bytes);
    MPI_Pack(&x, 1, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
    MPI_Pack(&d, 1, MPI_DOUBLE, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
    MPI_Bcast(buffer, position, MPI_PACKED, 0, MPI_COMM_WORLD);
    position = 0;
    MPI_Unpack(buffer, sizeof buffer, &position, &y, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(buffer, sizeof buffer, &position, &e, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    see(&y, 1);
}

static void attributes(void)
{
    static int value = 7;
    int key, flag, *found;
    MPI_Comm comm;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &found, &flag);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &found, &flag);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &found, &flag);
    see(found, 1);
    /* Values that look like MPI_BOTTOM, and like MPI_IN_PLACE of one library or the other, and are not. */
    for (intptr_t number = -1; number <= 1; number++) {
        MPI_Comm_set_attr(MPI_COMM_WORLD, key, (void *)number);
        MPI_Comm_get_attr(MPI_COMM_WORLD, key, &found, &flag);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_free_keyval(&key);
}

int main(int argc, char **argv)
{
    int provided, flag, version, subversion, length;
    char name[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_version(&version, &subversion);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Query_thread(&provided);
    MPI_Is_thread_main(&flag);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(name, &length);
    MPI_Get_library_version(library, &length);
    double start_time = MPI_Wtime(), tick = MPI_Wtick();
    operations();
    infos();
    errors();
    packing();
    attributes();
    flag = MPI_Wtime() >= start_time && tick > 0;
    see(&flag, 1);
    finish("misc");
}
