/* What each thread of a parallel loop loads and stores is known: it prints, for each thread, the first and the last iteration of
   it, and where the arrays are. */
#include <omp.h>
#include <stdio.h>

#define N 1000

static volatile double a[N], b[N], c[N];

int main(void) {
    int first[64], last[64], threads = 0;
    for (int i = 0; i < 64; i++) first[i] = N, last[i] = -1;
#pragma omp parallel
    {
        int own = omp_get_thread_num();
#pragma omp single
        threads = omp_get_num_threads();
#pragma omp for schedule(static)
        for (int i = 0; i < N; i++) {
            double x = a[i], y = b[i];
            c[i] = x + y;
            if (i < first[own]) first[own] = i;
            last[own] = i;
        }
    }
    printf("%#lx %#lx %#lx\n", (unsigned long)a, (unsigned long)b, (unsigned long)c);
    for (int t = 0; t < threads; t++) printf("%d %d\n", first[t], last[t]);
    return 0;
}
