/* Receives that complete in any order, some at a time. */
#ifndef WAITSOME_H
#define WAITSOME_H

#include "papers.h"

/* Until none is left. */
static inline void wait_some(void)
{
    static int which[MOST_REQUESTS];
    static MPI_Status statuses[MOST_REQUESTS];
    for (int done = 0, now; done < pending; done += now)
        MPI_Waitsome(pending, requests, &now, which, statuses);
    pending = 0;
}

#endif
