/* Many ranks on few cores: a rank that waits polls, and keeps the rank it waits for from running. This preload gives its core
 * away whenever a poll found nothing, and rests now and then, so that those that wait leave the machine to those that work.
 * Debian's MPICH polls through UCX; Open MPI calls sched_yield by itself where it is told that it has to share its cores.
 * Usable for traced and untraced runs alike. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int sched_yield(void)
{
    static _Thread_local unsigned polls;
    if (++polls % 8)
        return (int)syscall(SYS_sched_yield);
    int before = errno;
    nanosleep(&(struct timespec){0, 50 * 1000}, NULL);
    errno = before;
    return 0;
}

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*next)(void *);
    if (!next)
        next = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned events = next ? next(worker) : 0;
    if (events == 0)
        sched_yield();
    return events;
}
