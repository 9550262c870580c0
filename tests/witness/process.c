/* Processes, sessions, and what is left of environment, infos and topologies. */
#include "witness.h"

#include <string.h>

/* Arrays of strings: to NULL, or of that many. */
static void put_strings(char **strings, int n)
{
    int count = 0;
    while (n < 0 ? strings[count] != NULL : count < n)
        count++;
    LIST(i, count, put_string(strings[i], -1));
}

static int sum(const int *numbers, int n)
{
    int total = 0;
    for (int i = 0; i < n; i++)
        total += numbers[i];
    return total;
}

/* MPI_ERRCODES_IGNORE is a null pointer in every library, and no name tells it from another null. */
#define ARGV(x) SLOT(x, (x) == MPI_ARGV_NULL ? put("\"MPI_ARGV_NULL\"") : put_strings(x, -1))
#define ERRCODES(x, n)                                                                                              \
    OUT(x, (x) == MPI_ERRCODES_IGNORE ? put("\"NULL\"") : LIST(i, n, put_int((x)[i])))

W(Comm_spawn, (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
 MPI_Comm *intercomm, int array_of_errcodes[]),
  (command, argv, maxprocs, info, root, comm, intercomm, array_of_errcodes),
  PEER(root) COMM(comm) IF(at_root(root, comm)) STRING(command) ARGV(argv) INT(maxprocs) INFO(info) ALWAYS,
  NEW_COMM(intercomm) IF(at_root(root, comm)) ERRCODES(array_of_errcodes, maxprocs) ALWAYS)

W(Comm_spawn_multiple, (int count, char *array_of_commands[], char **array_of_argv[], const int array_of_maxprocs[],
 const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[]),
  (count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root, comm, intercomm,
   array_of_errcodes),
  PEER(root) COMM(comm) IF(at_root(root, comm)) INT(count)
   SLOT(array_of_commands, put_strings(array_of_commands, count))
   SLOT(array_of_argv, array_of_argv == MPI_ARGVS_NULL
                           ? put("\"MPI_ARGVS_NULL\"")
                           : LIST(k, count, array_of_argv[k] ? put_strings(array_of_argv[k], -1) : put("null")))
   INTS(array_of_maxprocs, count) SLOT(array_of_info, LIST(i, count, put_object(INFO, HANDLE(array_of_info[i]))))
   ALWAYS,
  NEW_COMM(intercomm) IF(at_root(root, comm)) ERRCODES(array_of_errcodes, sum(array_of_maxprocs, count)) ALWAYS)

W(Comm_get_parent, (MPI_Comm *parent),
  (parent),
  ,
  NEW_COMM(parent))

W(Comm_disconnect, (MPI_Comm *comm),
  (comm),
  MPI_Comm old = *comm; COMM_AT(comm),
  FREED(COMM, old))

W(Comm_join, (int fd, MPI_Comm *intercomm),
  (fd, intercomm),
  INT(fd),
  NEW_COMM(intercomm))

W(Open_port, (MPI_Info info, char *port_name),
  (info, port_name),
  INFO(info),
  OUT_STRING(port_name))

W(Close_port, (const char *port_name),
  (port_name),
  STRING(port_name),
  )

#define MEETING(name)                                                                                               \
    W(name, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),                     \
      (port_name, info, root, comm, newcomm),                                                                       \
      PEER(root) COMM(comm) IF(at_root(root, comm)) STRING(port_name) INFO(info) ALWAYS,                            \
      NEW_COMM(newcomm))
MEETING(Comm_accept)
MEETING(Comm_connect)

W(Publish_name, (const char *service_name, MPI_Info info, const char *port_name),
  (service_name, info, port_name),
  STRING(service_name) INFO(info) STRING(port_name),
  )

W(Unpublish_name, (const char *service_name, MPI_Info info, const char *port_name),
  (service_name, info, port_name),
  STRING(service_name) INFO(info) STRING(port_name),
  )

W(Lookup_name, (const char *service_name, MPI_Info info, char *port_name),
  (service_name, info, port_name),
  STRING(service_name) INFO(info),
  OUT_STRING(port_name))

W(Comm_set_info, (MPI_Comm comm, MPI_Info info),
  (comm, info),
  COMM(comm) INFO(info),
  )

W(Comm_get_info, (MPI_Comm comm, MPI_Info *info_used),
  (comm, info_used),
  COMM(comm),
  NEW_INFO(info_used))

W(Cart_map, (MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank),
  (comm, ndims, dims, periods, newrank),
  COMM(comm) INT(ndims) INTS(dims, ndims) BOOLS(periods, ndims),
  OUT_PEER(newrank))

W(Graph_map, (MPI_Comm comm, int nnodes, const int indx[], const int edges[], int *newrank),
  (comm, nnodes, indx, edges, newrank),
  COMM(comm) INT(nnodes) INTS(indx, nnodes) PEERS(edges, nnodes > 0 ? indx[nnodes - 1] : 0),
  OUT_PEER(newrank))

/* What its other arguments are only the program knows; the libraries here ignore them. */
__attribute__((visibility("default"))) int MPI_Pcontrol(const int level, ...)
{
    int (*next)(int, ...) = next_function("MPI_Pcontrol");
    line_begin();
    slot("level");
    put_int(level);
    slot("varargs");
    put("null");
    time_begin();
    int result = next(level);
    time_end();
    line_end("MPI_Pcontrol", "(level, varargs)", 1, result);
    return result;
}
__attribute__((visibility("default"))) int PMPI_Pcontrol(const int level, ...) { return MPI_Pcontrol(level); }

#if MPI_VERSION >= 4

W(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request),
  (comm, info, newcomm, request),
  COMM(comm) INFO(info),
  NEW_COMM_LATER(newcomm) NEW_REQ(request))

W(Info_create_env, (int argc, char *argv[], MPI_Info *info),
  (argc, argv, info),
  INT(argc) SLOT(argv, put_strings(argv, argc)),
  NEW_INFO(info))

/* What fits, without its NUL. */
#define OUT_FITTING(x, room) OUT(x, put_string(x, (int)strnlen(x, (size_t)((room) > 0 ? (room) : 0))))

W(Info_get_string, (MPI_Info info, const char *key, int *buflen, char *value, int *flag),
  (info, key, buflen, value, flag),
  int buflen_before = *buflen; INFO(info) STRING(key),
  INOUT_INT(buflen) OUT_BOOL(flag) IF(*flag) OUT_FITTING(value, buflen_before) ALWAYS)

W(Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session),
  (info, errhandler, session),
  INFO(info) ERRH(errhandler),
  NEW_SESSION(session))

W(Session_finalize, (MPI_Session *session),
  (session),
  MPI_Session old = *session; SLOT(session, put_object(SESSION, HANDLE(old))),
  FREED(SESSION, old))

W(Session_get_info, (MPI_Session session, MPI_Info *info_used),
  (session, info_used),
  SESSION(session),
  NEW_INFO(info_used))

W(Session_get_num_psets, (MPI_Session session, MPI_Info info, int *npset_names),
  (session, info, npset_names),
  SESSION(session) INFO(info),
  OUT_INT(npset_names))

W(Session_get_nth_pset, (MPI_Session session, MPI_Info info, int n, int *pset_len, char *pset_name),
  (session, info, n, pset_len, pset_name),
  int pset_len_before = *pset_len; SESSION(session) INFO(info) INT(n),
  INOUT_INT(pset_len) OUT_FITTING(pset_name, pset_len_before))

W(Session_get_pset_info, (MPI_Session session, const char *pset_name, MPI_Info *info),
  (session, pset_name, info),
  SESSION(session) STRING(pset_name),
  NEW_INFO(info))

W(Session_create_errhandler, (MPI_Session_errhandler_function *session_errhandler_fn, MPI_Errhandler *errhandler),
  (session_errhandler_fn, errhandler),
  FUNCTION(session_errhandler_fn),
  NEW_ERRH(errhandler))

W(Session_set_errhandler, (MPI_Session session, MPI_Errhandler errhandler),
  (session, errhandler),
  SESSION(session) ERRH(errhandler),
  )

W(Session_get_errhandler, (MPI_Session session, MPI_Errhandler *errhandler),
  (session, errhandler),
  SESSION(session),
  NEW_ERRH(errhandler))

W(Session_call_errhandler, (MPI_Session session, int errorcode),
  (session, errorcode),
  SESSION(session) INT(errorcode),
  )

W(Group_from_session_pset, (MPI_Session session, const char *pset_name, MPI_Group *newgroup),
  (session, pset_name, newgroup),
  SESSION(session) STRING(pset_name),
  NEW_GROUP(newgroup))

W(Comm_create_from_group, (MPI_Group group, const char *stringtag, MPI_Info info, MPI_Errhandler errhandler,
 MPI_Comm *newcomm),
  (group, stringtag, info, errhandler, newcomm),
  GROUP(group) STRING(stringtag) INFO(info) ERRH(errhandler),
  NEW_COMM(newcomm))

W(Intercomm_create_from_groups, (MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
 const char *stringtag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *newintercomm),
  (local_group, local_leader, remote_group, remote_leader, stringtag, info, errhandler, newintercomm),
  GROUP(local_group) PEER(local_leader) GROUP(remote_group) PEER(remote_leader) STRING(stringtag) INFO(info)
   ERRH(errhandler),
  NEW_COMM(newintercomm))

#endif
