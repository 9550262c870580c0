/* Functions that MPI calls and that end in a call of MPI. Optimised, that call is a jump: it returns into MPI, as MPI's own
 * calls do. */
#include "common.h"

static MPI_Comm kept;
static int key, copies;

static int copy(MPI_Comm comm, int number, void *state, void *value, void *result, int *flag)
{
    (void)comm, (void)number, (void)state;
    *(void **)result = value;
    copies++;
    return MPI_Initialized(flag);
}

/* The case that was lost: an attribute owns a communicator, and frees it with itself. */
static int drop(MPI_Comm comm, int number, void *value, void *state)
{
    (void)comm, (void)number, (void)state;
    if (--copies > 0)
        return MPI_SUCCESS;
    return MPI_Comm_free(value);
}

static int drop_type(MPI_Datatype type, int number, void *value, void *state)
{
    (void)number, (void)state;
    return MPI_Type_size(type, value);
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    static int bytes;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
    MPI_Type_size(*type, &bytes);
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
    static int class;
    (void)comm;
    MPI_Error_class(*code, &class);
}

static int query(void *state, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_INT, *(int *)state);
    return MPI_Status_set_cancelled(status, 0);
}

static int release(void *state)
{
    return MPI_Finalized(state);
}

static int cancel(void *state, int complete)
{
    (void)complete;
    return MPI_Finalized(state);
}

int main(int argc, char **argv)
{
    int value = 3, sum = 0, type_key, code;
    MPI_Comm copied;
    MPI_Datatype pair;
    MPI_Op adding;
    MPI_Errhandler handler;
    MPI_Request request;
    MPI_Status status;
    start(&argc, &argv);

    MPI_Comm_create_keyval(copy, drop, &key, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &kept);
    copies = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &copied);
    MPI_Comm_set_attr(copied, key, &kept);
    MPI_Comm again;
    MPI_Comm_dup(copied, &again);
    MPI_Comm_free(&again);
    MPI_Comm_free(&copied);
    checksum += copies + (kept == MPI_COMM_NULL);
    MPI_Comm_free_keyval(&key);

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, drop_type, &type_key, NULL);
    MPI_Type_set_attr(pair, type_key, &value);
    MPI_Type_free(&pair);
    MPI_Type_free_keyval(&type_key);
    checksum += value;

    MPI_Op_create(add, 1, &adding);
    MPI_Reduce_local(&value, &sum, 1, MPI_INT, adding);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, adding, MPI_COMM_WORLD);
    MPI_Op_free(&adding);
    checksum += sum;

    MPI_Comm_dup(MPI_COMM_WORLD, &copied);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(copied, handler);
    MPI_Errhandler_free(&handler);
    code = MPI_Send(&value, 1, MPI_INT, size + 5, 0, copied);
    checksum += code != MPI_SUCCESS;
    MPI_Comm_free(&copied);

    MPI_Grequest_start(query, release, cancel, &value, &request);
    MPI_Cancel(&request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    checksum += value;
    finish("tails");
    return 0;
}
