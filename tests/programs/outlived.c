/* What MPI lets live after it was freed: keys whose attributes are there still, which are deleted by copies of the keys; error
 * handlers, types, operations, groups and communicators that something is made of or under way with, or that a file has. */
#include "common.h"

static int dropped;

static int drop_comm(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return dropped++, MPI_SUCCESS;
}
static int drop_type(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    return dropped++, MPI_SUCCESS;
}
static int drop_win(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key, (void)value, (void)extra;
    return dropped++, MPI_SUCCESS;
}

/* The first key is freed while an object has an attribute of it, the second one is made and set, and only then is the first one's
 * attribute deleted. Twice: the library may give the numbers again. */
#define KEYS(Kind, object, null_copy, drop)                                                                            \
    for (int round = 0; round < 2; round++) {                                                                          \
        int first, second, copy, flag, value = 7, *found;                                                              \
        MPI_##Kind##_create_keyval(null_copy, drop, &first, NULL);                                                     \
        MPI_##Kind##_set_attr(object, first, &value);                                                                  \
        copy = first;                                                                                                  \
        MPI_##Kind##_free_keyval(&first);                                                                              \
        MPI_##Kind##_create_keyval(null_copy, drop, &second, NULL);                                                    \
        MPI_##Kind##_set_attr(object, second, &value);                                                                 \
        MPI_##Kind##_get_attr(object, copy, &found, &flag);                                                            \
        see(&flag, 1);                                                                                                 \
        MPI_##Kind##_delete_attr(object, copy);                                                                        \
        MPI_##Kind##_delete_attr(object, second);                                                                      \
        MPI_##Kind##_free_keyval(&second);                                                                             \
    }

static void failed(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    KEYS(Comm, comm, MPI_COMM_NULL_COPY_FN, drop_comm)
    MPI_Datatype type, made;
    MPI_Type_contiguous(3, MPI_INT, &type);
    KEYS(Type, type, MPI_TYPE_NULL_COPY_FN, drop_type)
    int memory[8] = {0};
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, comm, &win);
    KEYS(Win, win, MPI_WIN_NULL_COPY_FN, drop_win)
    MPI_Win_free(&win);
    see(&dropped, 1);

    /* An error handler that is in use is handed out again. */
    MPI_Errhandler handler, again;
    MPI_Comm_create_errhandler(failed, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_create_errhandler(failed, &handler);
    MPI_Comm_get_errhandler(comm, &again);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&again);
    MPI_Errhandler_free(&handler);

    /* A type that another one is made of, and one that a receive is under way with. */
    int next = (rank + 1) % size, last = (rank + size - 1) % size, numbers[3];
    MPI_Aint displacements[1];
    MPI_Datatype types[1];
    int combiner, counts[3], in[6], out[6] = {1, 2, 3, 4, 5, 6};
    MPI_Type_contiguous(2, type, &made);
    MPI_Type_free(&type);
    MPI_Type_get_envelope(made, &counts[0], &counts[1], &counts[2], &combiner);
    MPI_Type_get_contents(made, 1, 0, 1, numbers, displacements, types);
    MPI_Type_free(&types[0]);
    MPI_Type_commit(&made);
    MPI_Request requests[2];
    MPI_Irecv(in, 1, made, last, 5, comm, &requests[0]);
    MPI_Isend(out, 1, made, next, 5, comm, &requests[1]);
    MPI_Type_free(&made);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    see(in, 6);

    /* The type of a view, of which the file gives a copy. */
    MPI_File file;
    MPI_Offset start_of_view;
    MPI_Datatype element, view;
    char representation[MPI_MAX_DATAREP_STRING];
    MPI_Type_vector(2, 1, 2, MPI_INT, &view);
    MPI_Type_commit(&view);
    MPI_File_open(comm, "outlived.dat", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_INT, view, "native", MPI_INFO_NULL);
    MPI_Type_free(&view);
    MPI_Type_contiguous(5, MPI_INT, &made);
    MPI_File_get_view(file, &start_of_view, &element, &view, representation);
    MPI_Type_size(view, &numbers[0]);
    see(numbers, 1);
    MPI_Type_free(&view);
    MPI_Type_free(&made);
    MPI_File_close(&file);

    /* An operation, and the communicator itself, with a receive from any source under way. */
    MPI_Op op;
    int one = 1, sum = 0;
    MPI_Op_create(add, 1, &op);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, comm, &requests[0]);
    MPI_Op_free(&op);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    see(&sum, 1);
    MPI_Group group, same;
    MPI_Comm_group(comm, &group);
    MPI_Group_free(&group);
    MPI_Comm_group(comm, &same);
    MPI_Group_size(same, &sum);
    MPI_Group_free(&same);
    MPI_Irecv(in, 6, MPI_INT, MPI_ANY_SOURCE, 6, comm, &requests[0]);
    MPI_Isend(out, 6, MPI_INT, next, 6, comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    see(in, 6);
    finish("outlived");
    return 0;
}
