/* Sessions beside the world, and the other small things of MPI 4.0. */
#include "common.h"

static void on_error(MPI_Session *session, int *code, ...)
{
    int class;
    (void)session;
    MPI_Error_class(*code, &class);
    checksum += class;
}

static void sessions(void)
{
    MPI_Session session;
    MPI_Info info, used;
    MPI_Errhandler handler, found;
    MPI_Group group, low, high;
    MPI_Comm comm, inter;
    int sets, length, members, sum;
    char name[MPI_MAX_PSET_NAME_LEN];
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_SINGLE");
    MPI_Session_init(info, MPI_ERRORS_RETURN, &session);
    MPI_Session_get_info(session, &used);
    MPI_Info_free(&used);
    MPI_Session_create_errhandler(on_error, &handler);
    MPI_Session_set_errhandler(session, handler);
    MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
    MPI_Session_get_errhandler(session, &found);
    MPI_Errhandler_free(&found);
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
    for (int i = 0; i < sets; i++) {
        length = 0;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name);
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name);
        MPI_Session_get_pset_info(session, name, &used);
        MPI_Info_free(&used);
        checksum += length;
    }
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "all of us", info, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_size(comm, &members);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    checksum += members + sum;
    if (size > 1) {
        int range[1][3] = {{0, size / 2 - 1, 1}};
        MPI_Group_range_incl(group, 1, range, &low);
        MPI_Group_range_excl(group, 1, range, &high);
        int left = rank < size / 2;
        MPI_Intercomm_create_from_groups(left ? low : high, 0, left ? high : low, 0, "two halves", MPI_INFO_NULL,
                                         MPI_ERRORS_ARE_FATAL, &inter);
        MPI_Comm_remote_size(inter, &members);
        checksum += members;
        MPI_Barrier(inter);
        MPI_Comm_free(&inter);
        MPI_Group_free(&low);
        MPI_Group_free(&high);
    }
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Errhandler_free(&handler);
    MPI_Session_finalize(&session);
    MPI_Info_free(&info);
}

static void infos(void)
{
    MPI_Info info;
    char value[32];
    int room, flag;
    char *words[3] = {"program", "one word", NULL};
    MPI_Info_create(&info);
    MPI_Info_set(info, "colour", "ultramarine");
    room = 0;
    MPI_Info_get_string(info, "colour", &room, value, &flag);
    checksum += room + flag;
    room = 6;
    MPI_Info_get_string(info, "colour", &room, value, &flag);
    checksum += room + (long)strlen(value);
    room = sizeof value;
    MPI_Info_get_string(info, "colour", &room, value, &flag);
    checksum += room + (long)strlen(value);
    room = sizeof value;
    MPI_Info_get_string(info, "shape", &room, value, &flag);
    checksum += flag;
    MPI_Request request;
    MPI_Comm copy;
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
    MPI_Info_free(&info);
    MPI_Info_create_env(2, words, &info);
    MPI_Info_get_nkeys(info, &room);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    infos();
    sessions();
    finish("sessions4");
    return 0;
}
