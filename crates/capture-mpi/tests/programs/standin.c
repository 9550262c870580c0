/* An MPI library of three functions, one of them variadic: what arrives there is what a program passed. */
#include <stdarg.h>
#include <string.h>

int *MPI_UNWEIGHTED;

int PMPI_Pcontrol(const int level, ...) {
    va_list list;
    double sum = 0;
    va_start(list, level);
    if (level == 1)
        for (int i = 0; i < 8; i++) sum = sum * 2 + va_arg(list, long);
    if (level == 2)
        for (int i = 0; i < 10; i++) sum = sum * 2 + va_arg(list, double);
    if (level == 3) {
        sum += va_arg(list, long) * 1;
        sum += va_arg(list, double) * 10;
        sum += strcmp(va_arg(list, char *), "text") == 0 ? 1000 : 0;
        sum += va_arg(list, double) * 100;
        for (int i = 0; i < 3; i++) sum += va_arg(list, long) * 10000;
        sum += va_arg(list, double) * 1000000;
        for (int i = 0; i < 2; i++) sum += va_arg(list, long) * 10000000;
    }
    va_end(list);
    return (int)sum - level;
}

int PMPI_Comm_rank(long comm, int *rank) {
    (void)comm;
    *rank = 0;
    return 0;
}

int PMPI_Init(int *argc, char ***argv) {
    (void)argc, (void)argv;
    return 0;
}

int MPI_Pcontrol(const int level, ...) __attribute__((alias("PMPI_Pcontrol")));
int MPI_Comm_rank(long comm, int *rank) __attribute__((alias("PMPI_Comm_rank")));
int MPI_Init(int *argc, char ***argv) __attribute__((alias("PMPI_Init")));
