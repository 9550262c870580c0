/* Two threads add to a counter each, side by side in one line; with -DAPART, in lines of their own. */

#include <pthread.h>
#include <stdio.h>

#ifdef APART
#define STEP 8
#else
#define STEP 1
#endif

enum { TIMES = 5000 };

static volatile long counters[2 * STEP] __attribute__((aligned(64)));

static void *count(void *own) {
    volatile long *counter = own;
    for (int i = 0; i < TIMES; i++)
        *counter += i;
    return 0;
}

int main(void) {
    pthread_t other;
    if (pthread_create(&other, 0, count, (void *)&counters[STEP])) return 1;
    count((void *)&counters[0]);
    pthread_join(other, 0);
    printf("%ld\n", counters[0] + counters[STEP]);
    return 0;
}
