/* c[i] = a[i] + b[i] of doubles, each thread its part of so many, as often as is asked for. usage: vecadd [LENGTH [TIMES]] */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1000000, times = argc > 2 ? atol(argv[2]) : 5;
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c);
#pragma omp parallel for
    for (long i = 0; i < n; i++) a[i] = i, b[i] = 2 * i;
    for (long t = 0; t < times; t++) {
#pragma omp parallel for
        for (long i = 0; i < n; i++) c[i] = a[i] + b[i];
    }
    printf("%g\n", c[n - 1]);
    return 0;
}
