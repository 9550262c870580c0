/* y = A x with a sparse matrix of scattered columns, so often. usage: spmv [ROWS [TIMES]] */
#include <stdio.h>
#include <stdlib.h>

#define PER_ROW 8

int main(int argc, char **argv) {
    long rows = argc > 1 ? atol(argv[1]) : 50000, times = argc > 2 ? atol(argv[2]) : 5;
    int *columns = malloc(sizeof(int) * rows * PER_ROW);
    double *values = malloc(sizeof(double) * rows * PER_ROW), *x = malloc(sizeof(double) * rows),
           *y = malloc(sizeof(double) * rows);
    unsigned long seed = 1;
    for (long i = 0; i < rows * PER_ROW; i++) {
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        columns[i] = (seed >> 33) % rows, values[i] = i % 3;
    }
    for (long i = 0; i < rows; i++) x[i] = i;
    for (long t = 0; t < times; t++) {
#pragma omp parallel for
        for (long i = 0; i < rows; i++) {
            double sum = 0;
            for (int k = 0; k < PER_ROW; k++) sum += values[i * PER_ROW + k] * x[columns[i * PER_ROW + k]];
            y[i] = sum;
        }
    }
    printf("%g\n", y[rows - 1]);
    return 0;
}
