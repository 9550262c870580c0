/* Processes that meet: by a port, by a published name, by a socket; and processes that are started.
 * Debian's MPICH can do none of it but the names; there the calls must fail as they do untraced. */
#include "common.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static char *program;

#ifdef OPEN_MPI
/* Both halves of the world meet, the lower one waiting. */
static void meet(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int low = rank < size / 2, members, mine = rank, sum = 0;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half);
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, size / 2, 1, MPI_COMM_WORLD);
    } else if (rank == size / 2) {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (low)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    MPI_Comm_remote_size(inter, &members);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    checksum += sum + members;
    MPI_Comm_disconnect(&inter);
    if (rank == 0)
        MPI_Close_port(port);
    MPI_Comm_free(&half);
}

#endif

static void names(void)
{
    char port[] = "port-of-refrain", found[MPI_MAX_PORT_NAME] = "";
    if (rank == 0)
        MPI_Publish_name("refrain", MPI_INFO_NULL, port);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Lookup_name("refrain", MPI_INFO_NULL, found);
    checksum += strcmp(port, found) == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Unpublish_name("refrain", MPI_INFO_NULL, port);
}

#ifdef OPEN_MPI
/* Ranks 0 and 1 are joined by a socket. */
static void join(void)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof where;
    int port, ends = 0, listening = -1, line;
    MPI_Comm inter;
    if (rank > 1)
        return;
    line = socket(AF_INET, SOCK_STREAM, 0);
    if (rank == 0) {
        listening = line;
        bind(listening, (struct sockaddr *)&where, sizeof where);
        listen(listening, 1);
        getsockname(listening, (struct sockaddr *)&where, &length);
        port = where.sin_port;
        MPI_Send(&port, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        line = accept(listening, NULL, NULL);
    } else {
        MPI_Recv(&port, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        where.sin_port = (in_port_t)port;
        connect(line, (struct sockaddr *)&where, sizeof where);
    }
    MPI_Comm_join(line, &inter);
    MPI_Comm_remote_size(inter, &ends);
    checksum += ends;
    MPI_Comm_disconnect(&inter);
    close(line);
    if (listening >= 0)
        close(listening);
}

static void start_more(void)
{
    char *words[] = {"child", "of one", NULL}, *commands[2] = {program, program}, **lists[2] = {words, words};
    int codes[3] = {7, 7, 7}, each[2] = {1, 1}, value = 5;
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    int root = rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Comm_spawn(program, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Bcast(&value, 1, MPI_INT, root, inter);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_spawn_multiple(2, commands, lists, each, infos, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Bcast(&value, 1, MPI_INT, root, inter);
    MPI_Comm_disconnect(&inter);
    if (rank == 0)
        see(codes, 2);
}

#else
static void refused(void)
{
    char port[MPI_MAX_PORT_NAME] = "nowhere";
    char *commands[1] = {"./no-such-program"};
    int one[1] = {1}, codes[1], class, failed = 0;
    MPI_Info infos[1] = {MPI_INFO_NULL};
    MPI_Comm copy, inter;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Open_port(MPI_INFO_NULL, port), &class);
    failed += class != MPI_SUCCESS;
    failed += MPI_Close_port("nowhere") != MPI_SUCCESS;
    failed += MPI_Comm_connect("nowhere", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter) != MPI_SUCCESS;
    failed += MPI_Comm_accept("nowhere", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter) != MPI_SUCCESS;
    failed += MPI_Comm_join(-1, &inter) != MPI_SUCCESS;
    failed += MPI_Comm_spawn(commands[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, codes)
              != MPI_SUCCESS;
    failed += MPI_Comm_spawn_multiple(1, commands, MPI_ARGVS_NULL, one, infos, 0, MPI_COMM_SELF, &inter,
                                      MPI_ERRCODES_IGNORE) != MPI_SUCCESS;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_disconnect(&copy);
    checksum += failed;
}
#endif

int main(int argc, char **argv)
{
    MPI_Comm parent;
    start(&argc, &argv);
    program = argv[0];
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        int value = 0;
        MPI_Bcast(&value, 1, MPI_INT, 0, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return value == 5 ? 0 : 1;
    }
    names();
#ifdef OPEN_MPI
    if (size > 1) {
        meet();
        join();
    }
    start_more();
#else
    refused();
#endif
    finish("processes");
    return 0;
}
