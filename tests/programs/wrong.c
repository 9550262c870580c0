/* Calls that are wrong, one after the other, under MPI_ERRORS_RETURN: what each says must not depend on being watched. */
#include "common.h"

#define TELL(call)                                                                                                  \
    do {                                                                                                            \
        int code = call, class = -1;                                                                                \
        MPI_Error_class(code, &class);                                                                              \
        if (rank == 0)                                                                                              \
            printf("%d  %s\n", class, #call);                                                                       \
    } while (0)

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int values[4] = {1, 2, 3, 4}, ranks[2] = {0, 99}, found[2], dims[1] = {1000}, flag, number;
    char text[MPI_MAX_ERROR_STRING];
    void *pointer;
    MPI_Comm comm, world = MPI_COMM_WORLD, null_comm = MPI_COMM_NULL;
    MPI_Group group, other, null_group = MPI_GROUP_NULL;
    MPI_Datatype type, integer = MPI_INT, null_type = MPI_DATATYPE_NULL;
    MPI_Op sum = MPI_SUM, null_op = MPI_OP_NULL;
    MPI_Info null_info = MPI_INFO_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Errhandler null_handler = MPI_ERRHANDLER_NULL;
    MPI_Status status;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &group);

    TELL(MPI_Send(values, -1, MPI_INT, 0, 0, world));
    TELL(MPI_Send(values, 1, MPI_INT, size, 0, world));
    TELL(MPI_Send(values, 1, MPI_INT, 0, -5, world));
    TELL(MPI_Send(values, 1, null_type, 0, 0, world));
    TELL(MPI_Send(values, 1, MPI_INT, 0, 0, null_comm));
    TELL(MPI_Isend(values, 1, MPI_INT, -77, 0, world, &request));
    TELL(MPI_Recv(values, 1, MPI_INT, size + 3, 0, world, &status));
    TELL(MPI_Probe(size + 3, 0, world, &status));
    TELL(MPI_Bcast(values, 1, MPI_INT, size, world));
    TELL(MPI_Reduce(values, found, 1, MPI_INT, null_op, 0, world));
    TELL(MPI_Comm_rank(null_comm, &number));
    TELL(MPI_Comm_free(&null_comm));
    TELL(MPI_Comm_dup(null_comm, &comm));
    TELL(MPI_Comm_split(world, -9, 0, &comm));
    TELL(MPI_Group_incl(group, 2, ranks, &other));
    TELL(MPI_Group_free(&null_group));
    TELL(MPI_Cart_create(world, 1, dims, &number, 0, &comm));
    TELL(MPI_Cart_rank(world, dims, &number));
    TELL(MPI_Type_vector(-1, 1, 1, MPI_INT, &type));
    TELL(MPI_Type_contiguous(2, null_type, &type));
    TELL(MPI_Type_free(&integer));
    TELL(MPI_Type_commit(&null_type));
    TELL(MPI_Op_free(&sum));
    TELL(MPI_Op_free(&null_op));
    TELL(MPI_Info_set(null_info, "key", "value"));
    TELL(MPI_Info_free(&null_info));
    TELL(MPI_Start(&request));
    TELL(MPI_Waitall(-1, &request, &status));
    TELL(MPI_Errhandler_free(&null_handler));
    TELL(MPI_Comm_get_attr(world, MPI_KEYVAL_INVALID, &pointer, &flag));
    TELL(MPI_Get_count(&status, null_type, &number));
    TELL(MPI_Error_string(-12345, text, &number));

    /* A message longer than its room: the status is there all the same. */
    MPI_Isend(values, 4, MPI_INT, rank, 1, world, &request);
    TELL(MPI_Recv(found, 1, MPI_INT, rank, 1, world, &status));
    if (rank == 0)
        printf("source %d, tag %d\n", status.MPI_SOURCE, status.MPI_TAG);
    TELL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Group_free(&group);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    finish("wrong");
    return 0;
}
