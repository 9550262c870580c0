// Linear systems and eigenvalues by LAPACK, through its Fortran interface, so that no header is needed.
#include <stdio.h>
#include <stdlib.h>

void dgesv_(const int *n, const int *columns, double *a, const int *lda, int *pivots, double *b, const int *ldb, int *info);
void dsyev_(const char *vectors, const char *half, const int *n, double *a, const int *lda, double *values, double *work,
            const int *length, int *info, long, long);

int main(void)
{
    int n = 120, one = 1, length = 64 * n, info;
    double *a = malloc(n * n * sizeof *a), *b = malloc(n * sizeof *b), *work = malloc(length * sizeof *work);
    int *pivots = malloc(n * sizeof *pivots);
    double sum = 0;
    for (int round = 1; round <= 20; round++) {
        for (int i = 0; i < n; i++) {
            b[i] = i % 11;
            for (int j = 0; j < n; j++)
                a[i * n + j] = i == j ? n : 1.0 / (1 + (i * round + j * round) % 17);
        }
        dgesv_(&n, &one, a, &n, pivots, b, &n, &info);
        sum += b[n / 2] + info;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                a[i * n + j] = 1.0 / (1 + (i + j + round) % 13);
        dsyev_("V", "U", &n, a, &n, b, work, &length, &info, 1, 1);
        sum += b[0] + info;
    }
    printf("%g\n", sum);
    return 0;
}
