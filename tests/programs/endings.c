/* A program that does not end well, unless HOW is "well": endings HOW STEPS [ARGUMENT]. After STEPS steps of work on
 * every rank the last rank (or, where it says so, all of them) ends as it was told. */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int buffer[64], other[64];

/* Regular and irregular calls, some that poll; no rank waits for another one for long. */
static void step(int i)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, flag;
    int count = 1 + drawn(32, i, 7, 0);
    MPI_Request requests[2];
    MPI_Irecv(other, 64, MPI_INT, left, i % 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(buffer, count, MPI_INT, right, i % 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (i % 4 == 0)
        MPI_Allreduce(buffer, other, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* Numbers that never repeat, to itself alone: nothing waits, and what is recorded grows. */
static void grow(long i)
{
    int count = drawn(1 << 30, (int)i, rank, 1) % 64, tag = drawn(1 << 30, (int)i, rank, 2) % 30000;
    MPI_Sendrecv(buffer, count, MPI_INT, rank, tag, other, 64, MPI_INT, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void hold_memory(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1)
        exit(9);
    fclose(file);
    struct rlimit limit = {(rlim_t)(pages * 4096 + (1 << 20)), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
}

/* Takes all that is left of the file system of that file. */
static void fill(const char *path)
{
    static char block[4096];
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    while (write(file, block, sizeof block) > 0 || write(file, block, 1) > 0)
        ;
    close(file);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *how = argv[1];
    long steps = atol(argv[2]);
    start(&argc, &argv);
    int last = rank == size - 1;
    /* Every rank has its part by then. */
    if (!strcmp(how, "full"))
        MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(how, "full") && rank == 0)
        fill(argv[3]);
    if (!strcmp(how, "full") || !strcmp(how, "fullend") || !strcmp(how, "memory"))
        MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(how, "memory"))
        hold_memory();
    int growing = !strcmp(how, "full") || !strcmp(how, "memory") || !strcmp(how, "grow");
    for (long i = 0; i < steps; i++) {
        if (growing)
            grow(i);
        else
            step((int)i);
    }

    if (!strcmp(how, "exit")) {
        /* The launcher ends the others when the last one is gone; if one of them went first, it would end that. */
        if (!last)
            sleep(60);
        exit(last ? 7 : 0);
    }
    if (!strcmp(how, "polls") && last) {
        /* Nobody sends that. Ends by the signal in the next argument, or by MPI_Abort where it is 0. */
        MPI_Request request;
        int flag, signal = atoi(argv[3]);
        MPI_Irecv(other, 64, MPI_INT, MPI_ANY_SOURCE, 78, MPI_COMM_WORLD, &request);
        for (int i = 0; i < 3000; i++)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        if (signal)
            raise(signal);
        MPI_Abort(MPI_COMM_WORLD, 42);
    }
    if (!strcmp(how, "_exit") && last)
        _exit(3);
    if (!strcmp(how, "abort") && last)
        MPI_Abort(MPI_COMM_WORLD, 42);
    if (!strcmp(how, "error") && last)
        MPI_Send(buffer, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
    if (!strcmp(how, "segv") && last)
        *(volatile int *)0 = 1;
    if (!strcmp(how, "trap") && last)
        __asm__ volatile("int3");
    if (!strcmp(how, "raise") && last)
        raise(atoi(argv[3]));
    if (!strcmp(how, "handled") && last) {
        /* A handler of the program's own stands. */
        signal(SIGTERM, _exit);
        raise(SIGTERM);
    }
    if (!strcmp(how, "truncate") && last) {
        /* The file is cut under the tracer's feet. */
        char command[4096];
        snprintf(command, sizeof command, "for f in %s/%d-*.part; do : >$f; done", argv[3], rank);
        if (system(command) != 0)
            return 9;
    }
    if (!strcmp(how, "fork")) {
        pid_t child = fork();
        if (child == 0)
            exit(5);
        int status;
        waitpid(child, &status, 0);
        see(&status, 1);
    }
    if (!strcmp(how, "hang") && last) {
        sigset_t none;
        sigemptyset(&none);
        for (;;)
            sigsuspend(&none);
    }
    if (!strcmp(how, "fullend") && rank == 0)
        fill(argv[3]);
    /* Others go on, and wait for the one that is gone. */
    for (long i = steps; !growing && i < steps + 40; i++)
        step((int)i);
    if (!strcmp(how, "spin"))
        for (int i = 0;; i++)
            step(i);
    MPI_Finalize();
    if (rank == 0)
        printf("endings %s: %ld\n", how, checksum);
    return !strcmp(how, "finalized") ? 6 : 0;
}
