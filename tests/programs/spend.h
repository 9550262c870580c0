/* Time that is spent by the clock, and what the clock says: nanoseconds of CLOCK_MONOTONIC, which all ranks of one host
 * share. Nobody is kept from working meanwhile. */
#ifndef SPEND_H
#define SPEND_H

#include <stdint.h>
#include <time.h>

static inline int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void spend_until(int64_t end)
{
    struct timespec t = {end / 1000000000, end % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

static inline void spend(int64_t ns)
{
    spend_until(now() + ns);
}

#endif
