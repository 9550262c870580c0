/* Variadic arguments of every class, in registers and on the stack, through a stand-in for an MPI library. */
#include <stdarg.h>
#include <stdio.h>

int MPI_Pcontrol(const int level, ...);
int MPI_Init(int *argc, char ***argv);

int main(void) {
    printf("none %d\n", MPI_Pcontrol(0));
    printf("ints %d\n", MPI_Pcontrol(1, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L));
    printf("doubles %d\n", MPI_Pcontrol(2, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0));
    printf("mixed %d\n", MPI_Pcontrol(3, 1L, 1.5, "text", 2.5, 2L, 3L, 4L, 3.5, 5L, 6L));
    printf("init %d\n", MPI_Init(0, 0));
    printf("mixed %d\n", MPI_Pcontrol(3, 1L, 1.5, "text", 2.5, 2L, 3L, 4L, 3.5, 5L, 6L));
    return 0;
}
