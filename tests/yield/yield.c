/* Many MPICH ranks on few cores: Debian's MPICH polls for messages without ever giving up its core, so a rank that
 * waits keeps the rank it waits for from running. This preload yields the core whenever a poll found nothing.
 * Usable for traced and untraced runs alike; inert where UCX is not used. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

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
