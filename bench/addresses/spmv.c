// y = A x, A sparse with random columns.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int n = 40000, row = 8, rounds = argc > 1 ? atoi(argv[1]) : 12;
    int *start = malloc((n + 1) * sizeof *start), *column = malloc(n * row * sizeof *column);
    double *value = malloc(n * row * sizeof *value), *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    unsigned state = 1;
    for (int i = 0; i < n; i++) {
        start[i] = i * row;
        x[i] = i;
        for (int k = 0; k < row; k++) {
            state = state * 1664525u + 1013904223u;
            column[i * row + k] = (state >> 8) % n;
            value[i * row + k] = k;
        }
    }
    start[n] = n * row;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int k = start[i]; k < start[i + 1]; k++)
                sum += value[k] * x[column[k]];
            y[i] = sum;
        }
    printf("%g\n", y[n - 1]);
    return 0;
}
