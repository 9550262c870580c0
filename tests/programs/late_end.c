/* A signal handler calls MPI_Finalize: late_end WHERE [MICROSECONDS]. "computing": the timer strikes while the program
 * makes short calls, so anywhere; "waiting": while it waits in MPI for a message that never comes; "other": in a thread
 * that makes no calls while the main one does; "jump": the handler leaves a call of MPI by a jump before. */
#define _GNU_SOURCE
#include "common.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;
static int jumps;

static void end(int number)
{
    (void)number;
    if (jumps)
        siglongjmp(back, 1);
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

static void *stand(void *after)
{
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    strike((long)after);
    for (;;)
        pause();
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, number, value = 0;
    if (argc < 2)
        return 2;
    long after = argc > 2 ? atol(argv[2]) : 20000;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = end;
    sigaction(SIGALRM, &action, NULL);
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_t thread;
    if (!strcmp(argv[1], "other"))
        pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_create(&thread, NULL, look_once, NULL);
    pthread_join(thread, NULL);
    if (!strcmp(argv[1], "other"))
        pthread_create(&thread, NULL, stand, (void *)after);
    else
        strike(after);
    if (!strcmp(argv[1], "waiting"))
        MPI_Recv(&value, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(argv[1], "jump")) {
        jumps = 1;
        if (sigsetjmp(back, 1) == 0)
            MPI_Recv(&value, 1, MPI_INT, rank, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        jumps = 0;
        end(0);
    }
    for (long i = 0;; i++) {
        /* New values all the time, so that we are seldom in MPI and mostly in whoever looks at the calls. */
        MPI_Status status;
        memset(&status, 0, sizeof status);
        MPI_Status_set_elements(&status, MPI_INT, (int)(i * 7919 % 100003));
        MPI_Get_count(&status, MPI_INT, &number);
    }
}
