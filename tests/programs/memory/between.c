/* References that say themselves between which calls they lie: a thread stores into its own area, at the index of how many calls
   it has made so far. Its first argument is the number of steps, the second the number of threads beside the first, the third how
   the run goes on: `polls` asks for messages until they are there; `abort` and `kill` end it in its middle, the latter when there is
   a file `go`. */

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 8
#define AREA 4096

static volatile long areas[2 * MOST + 1][AREA];
static _Thread_local volatile long *area;
static _Thread_local long made;
static int rank, size, polls;
static long steps;

/* One to three stores. */
__attribute__((noinline)) static void touch(void) {
    for (long k = 0; k <= made % 3; k++) area[made % AREA] = k;
}

#define CALL(call)                                                                                                   \
    do {                                                                                                             \
        touch();                                                                                                     \
        call;                                                                                                        \
        made++;                                                                                                      \
    } while (0)

/* A call that a callback makes returns before the one that ran the callback. */
static int copied(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    int own;
    (void)key, (void)extra, (void)in, (void)out;
    CALL(MPI_Comm_rank(comm, &own));
    touch();
    *flag = 0;
    return MPI_SUCCESS;
}

static void exchange(int tag) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, got = -1;
    MPI_Request requests[2];
    CALL(MPI_Irecv(&got, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &requests[0]));
    CALL(MPI_Isend(&rank, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &requests[1]));
    if (polls) {
        int done = 0;
        while (!done) CALL(MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE));
        CALL(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    } else {
        CALL(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    if (got != from) MPI_Abort(MPI_COMM_WORLD, 3);
}

static void *work(void *argument) {
    long which = (long)argument;
    area = areas[which];
    for (long step = 0; step < steps; step++) exchange((int)((which - 1) % MOST) + 1);
    touch();
    return NULL;
}

int main(int count, char **words) {
    area = areas[0];
    steps = count > 1 ? atol(words[1]) : 10;
    int threads = count > 2 ? atoi(words[2]) : 0;
    const char *how = count > 3 ? words[3] : "";
    polls = !strcmp(how, "polls");
    int level, key;
    CALL(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
    CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CALL(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (level < MPI_THREAD_MULTIPLE) threads = 0;
    CALL(MPI_Comm_create_keyval(copied, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    CALL(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL));
    MPI_Comm other;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    CALL(MPI_Comm_free(&other));
    CALL(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    CALL(MPI_Comm_free_keyval(&key));
    /* The second threads may have the numbers of the first. */
    for (long turn = 0; turn < 2; turn++) {
        pthread_t all[MOST];
        for (long k = 0; k < threads; k++) pthread_create(&all[k], NULL, work, (void *)(1 + turn * threads + k));
        for (long k = 0; k < threads; k++) pthread_join(all[k], NULL);
    }
    printf("%d %p\n", rank, (void *)areas);
    fflush(stdout);
    for (long step = 0; step < steps; step++) {
        if (step == steps / 2 && rank == size - 1) {
            if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
            if (!strcmp(how, "kill")) {
                while (access("go", F_OK)) usleep(10000);
                kill(getpid(), SIGKILL);
            }
        }
        exchange(0);
        CALL(MPI_Barrier(MPI_COMM_WORLD));
    }
    CALL(MPI_Finalize());
    touch();
    return 0;
}
