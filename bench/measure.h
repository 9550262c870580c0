/* CPU time of a statement: one line, name and nanoseconds (the best of several rounds). */
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 15, CALLS = 20000 };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

#define MEASURE(name, statement)                          \
    do {                                                  \
        double best = 1e30;                               \
        for (int round = 0; round < ROUNDS; round++) {    \
            double start = cpu_ns();                      \
            for (int i = 0; i < CALLS; i++) {             \
                statement;                                \
            }                                             \
            double each = (cpu_ns() - start) / CALLS;     \
            best = each < best ? each : best;             \
        }                                                 \
        printf("%s %.1f\n", name, best);                  \
    } while (0)
