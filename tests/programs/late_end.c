/* A signal handler calls MPI_Finalize: late_end WHERE [MICROSECONDS]. "computing": a timer strikes while the program makes
 * short calls, so anywhere; "waiting": while it waits in MPI for a message that never comes, which MPICH does not survive;
 * "calling": while MPI calls a function of the program's; "standing": another thread finalizes while the main one stands
 * still in a handler of its own, for ever. */
#define _GNU_SOURCE
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static void end(int number)
{
    (void)number;
    MPI_Finalize();
    if (write(1, "ended\n", 6) != 6)
        _exit(9);
    _exit(0);
}

static void *look_once(void *unused)
{
    MPI_Wtime();
    return unused;
}

static void strike(long after)
{
    struct itimerval timer = {{0, 0}, {after / 1000000, after % 1000000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static int deleted(MPI_Comm comm, int key, void *value, void *more)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)more;
    raise(SIGALRM);
    return MPI_SUCCESS;
}

static volatile sig_atomic_t stands;

static void stand(int number)
{
    (void)number;
    stands = 1;
    for (;;)
        pause();
}

static pthread_t first;

static void *stop_and_end(void *after)
{
    usleep((useconds_t)(long)after);
    pthread_kill(first, SIGUSR1);
    while (!stands)
        usleep(100);
    end(0);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, number, value = 0;
    if (argc < 2)
        return 2;
    long after = argc > 2 ? atol(argv[2]) : 20000;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGALRM, end);
    signal(SIGUSR1, stand);
    first = pthread_self();
    pthread_t thread;
    pthread_create(&thread, NULL, look_once, NULL);
    pthread_join(thread, NULL);
    if (!strcmp(argv[1], "standing"))
        pthread_create(&thread, NULL, stop_and_end, (void *)after);
    else if (strcmp(argv[1], "calling") != 0)
        strike(after);
    if (!strcmp(argv[1], "calling")) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &number, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, number, &value);
        MPI_Comm_delete_attr(MPI_COMM_SELF, number);
    }
    if (!strcmp(argv[1], "waiting"))
        MPI_Recv(&value, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (long i = 0;; i++) {
        /* New values all the time, so that we are seldom in MPI and mostly in whoever looks at the calls. */
        MPI_Status status;
        memset(&status, 0, sizeof status);
        MPI_Status_set_elements(&status, MPI_INT, (int)(i * 7919 % 100003));
        MPI_Get_count(&status, MPI_INT, &number);
    }
}
