// c = a + b, over and over, until a trace is long enough.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int n = 100000, rounds = argc > 1 ? atoi(argv[1]) : 40;
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c);
    for (int i = 0; i < n; i++) {
        a[i] = i;
        b[i] = 2 * i;
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < n; i++)
            c[i] = a[i] + b[i];
    printf("%g\n", c[n - 1]);
    return 0;
}
