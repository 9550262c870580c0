/* Opened by late.c while it runs; linked with an MPI library that the program knows nothing of. */
#include <stddef.h>
#include <stdio.h>

int MPI_Init(int *argc, char ***argv);
int MPI_Pcontrol(const int level, ...);
int MPI_Isend_c(void) __attribute__((weak));
int PMPI_Win_create(void) __attribute__((weak));
int MPI_Comm_rank(long comm, int *rank) __attribute__((weak));

/* Slots that the linker fills in with data, not with code. */
void *const table[] = {(void *)MPI_Isend_c, (void *)MPI_Comm_rank};

static int early = -1;

/* Runs before dlopen has returned. */
__attribute__((constructor)) static void begin(void)
{
    MPI_Comm_rank(0, &early);
}

int plugin(void)
{
    int rank = 7;
    printf("early %d, init %d\n", early, MPI_Init(NULL, NULL));
    printf("Isend_c %d %d, Win_create %d, Comm_rank %d %d\n", MPI_Isend_c != NULL, table[0] != NULL,
           PMPI_Win_create != NULL, MPI_Comm_rank != NULL, table[1] == (void *)MPI_Comm_rank);
    MPI_Comm_rank(0, &rank);
    return rank + MPI_Pcontrol(3, 1L, 2.0, "text", 3.0, 1L, 1L, 1L, 4.0, 1L, 1L);
}
