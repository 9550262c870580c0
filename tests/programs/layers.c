/* MPI's layer for Fortran, called from C as a program of both languages calls it. The layer is opened when the program
   runs, so that one source does for every library.
     callbacks  attributes are set whose delete function, one of Fortran, calls MPI in C
     jump       and one that jumps out of the layer
     plugins    libraries that each bring a layer of their own: one that only plays MPI, and MPI's
     reopen     a library that brings the layer is opened, used and closed again
     offered    whether names of Fortran are there that nothing in this program defines */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef OPEN_MPI
#define LAYER "libmpi_mpifh.so.40"
#else
#define LAYER "libmpichfort.so.12"
#endif

extern void mpi_init_(int *) __attribute__((weak));

static jmp_buf away;
static int jumping, helping;

static void *found(void *handle, const char *name) {
    void *symbol = dlsym(handle, name);
    if (!symbol) {
        printf("%s: %s\n", name, dlerror());
        exit(3);
    }
    return symbol;
}

static void *opened(const char *path, int how) {
    void *handle = dlopen(path, RTLD_NOW | how);
    if (!handle) {
        puts(dlerror());
        exit(3);
    }
    return handle;
}

static void help(void) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void copy(int *comm, int *key, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out, int *flag, int *error) {
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    *flag = *error = 0;
}

static void discard(int *comm, int *key, MPI_Aint *value, MPI_Aint *extra, int *error) {
    (void)comm, (void)key, (void)value, (void)extra;
    if (helping)
        help(), help();
    *error = 0;
    if (jumping)
        longjmp(away, 1);
}

static void attributes(int jumps) {
    void *layer = opened(LAYER, RTLD_GLOBAL);
    void (*create)(void *, void *, int *, MPI_Aint *, int *) = found(RTLD_DEFAULT, "mpi_comm_create_keyval_");
    void (*set)(int *, int *, MPI_Aint *, int *) = found(RTLD_DEFAULT, "mpi_comm_set_attr_");
    void (*barrier)(int *, int *) = found(RTLD_DEFAULT, "mpi_barrier_");
    int key, error, comm = MPI_Comm_c2f(MPI_COMM_WORLD);
    MPI_Aint value = 1, extra = 0;
    helping = !jumps;
    create((void *)copy, (void *)discard, &key, &extra, &error);
    set(&comm, &key, &value, &error);
    value = 2;
    set(&comm, &key, &value, &error);
    jumping = jumps;
    if (!setjmp(away)) {
        value = 3;
        set(&comm, &key, &value, &error);
    }
    jumping = 0;
    for (value = 4; value < 8; value++)
        set(&comm, &key, &value, &error);
    barrier(&comm, &error);
    helping = 0;
    (void)layer;
}

static int size_by(const char *path, int close) {
    void *handle = opened(path, RTLD_LOCAL);
    int (*size)(int) = (int (*)(int))found(handle, "size");
    int known = size(MPI_Comm_c2f(MPI_COMM_WORLD));
    if (close)
        dlclose(handle);
    return known;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(what, "callbacks") || !strcmp(what, "jump")) {
        attributes(!strcmp(what, "jump"));
    } else if (!strcmp(what, "plugins")) {
        int serial = size_by(argv[2], 0), parallel = size_by(argv[3], 0);
        printf("%d %d\n", serial, parallel);
    } else if (!strcmp(what, "reopen")) {
        for (int i = 0; i < 3; i++) {
            printf("%d\n", size_by(argv[3], 1));
            /* Something else takes the place. */
            mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mmap(NULL, 200 << 10, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
    } else if (!strcmp(what, "offered")) {
        int has_init = dlsym(RTLD_DEFAULT, "mpi_init_") != NULL, has_send = dlsym(RTLD_DEFAULT, "mpi_send_f08_") != NULL;
        printf("%d %d %d\n", mpi_init_ != NULL, has_init, has_send);
        opened(LAYER, RTLD_GLOBAL);
        printf("%d\n", dlsym(RTLD_DEFAULT, "mpi_init_") != NULL);
    }
    MPI_Finalize();
    return 0;
}
