/* What the dynamic linker offers in this process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; i++) printf("%s %s\n", argv[i], dlsym(RTLD_DEFAULT, argv[i]) ? "yes" : "no");
    MPI_Finalize();
    return 0;
}
