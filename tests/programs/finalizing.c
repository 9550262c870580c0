/* A program that comes to MPI_Finalize in a state that MPI forgives and a tracer must, too: finalizing HOW [ARGUMENT].
 * Every rank works first. Rank 0 prints a line before MPI_Finalize, and one after it. */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static int buffer[4096], other[4096];

static void step(int i)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Sendrecv(buffer, 1 + i % 7, MPI_INT, right, 5, other, 64, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (i % 10 == 0)
        MPI_Allreduce(buffer, other, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* One rank begins something that the others never take part in, and does not wait for it. */
static int begin_alone(const char *how)
{
    MPI_Request request;
    MPI_Comm world = MPI_COMM_WORLD;
    int next = (rank + 1) % size;
    if (!strcmp(how, "ibarrier"))
        return MPI_Ibarrier(world, &request);
    if (!strcmp(how, "ibcast"))
        return MPI_Ibcast(buffer, 16, MPI_INT, next, world, &request);
    if (!strcmp(how, "igather"))
        return MPI_Igather(buffer, 1, MPI_INT, other, 1, MPI_INT, rank, world, &request);
    if (!strcmp(how, "iallreduce"))
        return MPI_Iallreduce(buffer, other, 1, MPI_INT, MPI_SUM, world, &request);
    if (!strcmp(how, "ialltoall"))
        return MPI_Ialltoall(buffer, 1, MPI_INT, other, 1, MPI_INT, world, &request);
    if (!strcmp(how, "irecv"))
        return MPI_Irecv(other, 4096, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &request);
    if (!strcmp(how, "precv")) {
        MPI_Recv_init(other, 4096, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &request);
        return MPI_Start(&request);
    }
    if (!strcmp(how, "idle"))
        return MPI_Recv_init(other, 4096, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &request);
    return 0;
}

/* Communicators until there are no more, or enough of them; of this rank alone, which is quick. */
static void exhaust(void)
{
    MPI_Comm made, comm = MPI_COMM_SELF;
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2500; i++)
        if (MPI_Comm_dup(comm, &made) != MPI_SUCCESS)
            break;
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
}

static void limit(int what, rlim_t most)
{
    struct rlimit limit = {most, RLIM_INFINITY};
    getrlimit(what, &limit);
    limit.rlim_cur = most;
    setrlimit(what, &limit);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const char *how = argv[1];
    start(&argc, &argv);
    int last = rank == size - 1, chosen = argc != 3 || rank == atoi(argv[2]);
    for (int i = 0; i < 30; i++)
        step(i);

    if (chosen)
        see(&rank, begin_alone(how));
    if (!strcmp(how, "exhaust") && chosen)
        exhaust();
    if (!strcmp(how, "setuid") && chosen && setgid(65534) + setuid(65534) != 0)
        return 9;
    if (!strcmp(how, "fsize"))
        limit(RLIMIT_FSIZE, 0);
    if (!strcmp(how, "nofile") && chosen) {
        limit(RLIMIT_NOFILE, 64);
        while (dup(0) >= 0)
            ;
    }
    /* Less than anybody takes for a message, and enough for MPI_Finalize. */
    if (!strcmp(how, "memory") && chosen) {
        long pages = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (!file || fscanf(file, "%ld", &pages) != 1)
            return 9;
        fclose(file);
        limit(RLIMIT_AS, (rlim_t)(pages * 4096 + (4 << 20)));
    }
    if (!strcmp(how, "pipe")) {
        /* Nobody reads what is said. */
        int ends[2];
        if (pipe(ends) != 0 || dup2(ends[1], 2) < 0)
            return 9;
        close(ends[0]);
        close(ends[1]);
        /* And there is something to say. */
        limit(RLIMIT_FSIZE, 0);
    }
    if (!strcmp(how, "closed")) {
        close(0);
        close(2);
    }
    if (!strcmp(how, "exit") && last) {
        fflush(stdout);
        _exit(0);
    }
    /* Goes on when the others have decided what to do without it; untraced, after a while. */
    if (!strcmp(how, "stopped") && last) {
        pid_t self = getpid();
        if (fork() == 0) {
            glob_t found;
            usleep(300000);
            for (int i = 0; i < 600 && access(argv[2], F_OK) == 0; i++, usleep(100000))
                if (glob(argv[3], 0, NULL, &found) == 0)
                    break;
            kill(self, SIGCONT);
            _exit(0);
        }
        raise(SIGSTOP);
    }
    /* Sent, not waited for, and larger than what is sent at once: the receiver needs this rank's help, which is in
     * MPI_Finalize by then. */
    static char large[1 << 22];
    if (!strcmp(how, "freed") && rank == 0) {
        MPI_Request request;
        MPI_Isend(large, sizeof large, MPI_CHAR, 1, 8, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    if (!strcmp(how, "freed") && rank == 1) {
        usleep(300000);
        MPI_Recv(large, sizeof large, MPI_CHAR, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        printf("finalizing %s: %d ranks\n", how, size);
        fflush(stdout);
    }
    MPI_Finalize();
    if (rank == 0)
        printf("finalized\n");
    return 0;
}
