/* Functions of the program that MPI calls, and that call MPI: what they call is the program's own. */
#include "common.h"

static MPI_Op adding;
static int other_key = MPI_KEYVAL_INVALID, extra = 5;

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int bytes, known;
    MPI_Type_size(*type, &bytes);
    MPI_Initialized(&known);
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i] * known + bytes - 4;
}

/* A callback that makes MPI call another one. */
static int copy(MPI_Comm comm, int key, void *state, void *value, void *result, int *flag)
{
    int members, mine = 1, sum = 2;
    (void)key;
    MPI_Comm_size(comm, &members);
    MPI_Reduce_local(&mine, &sum, 1, MPI_INT, adding);
    checksum += sum + members + *(int *)state;
    *(void **)result = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *state)
{
    int me, flag = 0;
    void *other;
    (void)key, (void)state;
    MPI_Comm_rank(comm, &me);
    if (other_key != MPI_KEYVAL_INVALID)
        MPI_Comm_get_attr(comm, other_key, &other, &flag);
    checksum += 10 * me + flag + *(int *)value;
    return MPI_SUCCESS;
}

static int copy_type(MPI_Datatype type, int key, void *state, void *value, void *result, int *flag)
{
    MPI_Aint lb, extent;
    (void)key, (void)state;
    MPI_Type_get_extent(type, &lb, &extent);
    checksum += (long)extent;
    *(void **)result = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop_type(MPI_Datatype type, int key, void *value, void *state)
{
    int bytes;
    (void)key, (void)value, (void)state;
    MPI_Type_size(type, &bytes);
    checksum += bytes;
    return MPI_SUCCESS;
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
    int class, me;
    MPI_Error_class(*code, &class);
    MPI_Comm_rank(*comm, &me);
    checksum += 100 * class + me;
}

static int query(void *state, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_INT, *(int *)state);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 0;
    status->MPI_TAG = 7;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    int over;
    MPI_Finalized(&over);
    checksum += *(int *)state + over;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    int flag;
    MPI_Initialized(&flag);
    checksum += *(int *)state * 3 + complete + flag;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    int key, type_key, old_key, flag;
    int *found;
    MPI_Comm mine, copied, again;
    MPI_Comm_create_keyval(copy, drop, &key, &extra);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &other_key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    MPI_Comm_set_attr(mine, key, &extra);
    MPI_Comm_set_attr(mine, other_key, &extra);
    MPI_Comm_dup(mine, &copied);
    MPI_Comm_dup(copied, &again);
    MPI_Comm_get_attr(copied, key, &found, &flag);
    see(found, flag);
    MPI_Comm_delete_attr(copied, key);
    MPI_Comm_get_attr(copied, key, &found, &flag);
    checksum += flag;
    MPI_Comm_set_attr(again, key, &extra);
    MPI_Comm_free(&again);
    MPI_Comm_free(&copied);
    MPI_Comm_free(&mine);
    MPI_Comm_free_keyval(&other_key);
    MPI_Comm_free_keyval(&key);

    MPI_Datatype pair, twin;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_keyval(copy_type, drop_type, &type_key, NULL);
    MPI_Type_set_attr(pair, type_key, &extra);
    MPI_Type_dup(pair, &twin);
    MPI_Type_get_attr(twin, type_key, &found, &flag);
    see(found, flag);
    MPI_Type_delete_attr(pair, type_key);
    MPI_Type_free(&twin);
    MPI_Type_free(&pair);
    MPI_Type_free_keyval(&type_key);

    /* As before MPI 2. */
    MPI_Comm_dup(MPI_COMM_SELF, &mine);
    MPI_Keyval_create(copy, drop, &old_key, &extra);
    MPI_Attr_put(mine, old_key, &extra);
    MPI_Attr_get(mine, old_key, &found, &flag);
    see(found, flag);
    MPI_Comm_dup(mine, &copied);
    MPI_Attr_delete(mine, old_key);
    MPI_Comm_free(&copied);
    MPI_Comm_free(&mine);
    MPI_Keyval_free(&old_key);
}

static void errors(void)
{
    MPI_Comm mine;
    MPI_Errhandler handler, found;
    int code, class, own_class, own_code, length, value = 3;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(mine, handler);
    MPI_Comm_get_errhandler(mine, &found);
    MPI_Errhandler_free(&found);
    MPI_Errhandler_free(&handler);
    code = MPI_Send(&value, 1, MPI_INT, size + 5, 0, mine);
    MPI_Error_class(code, &class);
    checksum += class;
    MPI_Add_error_class(&own_class);
    MPI_Add_error_code(own_class, &own_code);
    MPI_Add_error_string(own_class, "a class of mine");
    MPI_Add_error_string(own_code, "an error of mine");
    MPI_Error_string(own_code, text, &length);
    checksum += length;
    MPI_Error_class(own_code, &class);
    MPI_Comm_call_errhandler(mine, own_code);
    /* Alive only through the communicator. */
    MPI_Comm_get_errhandler(mine, &found);
    MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&found);
    MPI_Comm_free(&mine);
}

static void reductions(void)
{
    int mine[3] = {rank, 1, 2}, sum[3] = {0};
    MPI_Request request;
    MPI_Reduce_local(mine, sum, 3, MPI_INT, adding);
    see(sum, 3);
    MPI_Allreduce(mine, sum, 3, MPI_INT, adding, MPI_COMM_WORLD);
    see(sum, 3);
    MPI_Scan(mine, sum, 3, MPI_INT, adding, MPI_COMM_WORLD);
    see(sum, 3);
    MPI_Iallreduce(mine, sum, 3, MPI_INT, adding, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    see(sum, 3);
}

static void generalized(void)
{
    static int four = 4;
    MPI_Request request;
    MPI_Status status;
    int count, flag;
    MPI_Grequest_start(query, release, cancel, &four, &request);
    MPI_Cancel(&request);
    MPI_Test(&request, &flag, &status);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    checksum += count + flag;
    memset(&status, 0, sizeof status);
    MPI_Status_set_elements(&status, MPI_INT, 3);
    MPI_Status_set_elements_x(&status, MPI_INT, 5);
    MPI_Get_elements(&status, MPI_INT, &count);
    MPI_Status_set_cancelled(&status, 1);
    MPI_Test_cancelled(&status, &flag);
    checksum += count + flag;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    MPI_Op_create(add, 1, &adding);
    reductions();
    attributes();
    errors();
    generalized();
    MPI_Op_free(&adding);
#ifndef OPEN_MPI
    int pair[2];
    MPI_Aint one, two;
    MPI_Get_address(&pair[0], &one);
    MPI_Get_address(&pair[1], &two);
    checksum += MPI_Aint_diff(two, one) + MPI_Aint_add(16, 2) + (MPI_Aint_add(one, 4) == two);
#endif
    finish("callbacks");
    return 0;
}
