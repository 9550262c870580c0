// An error handler throws an exception through a call of MPI's layer for Fortran, so many words deeper on the stack as the
// first argument says. The second: a call of that layer follows, before MPI ends.
#include <dlfcn.h>
#include <mpi.h>

#include <alloca.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef OPEN_MPI
static const char *layer = "libmpi_mpifh.so.40";
#else
static const char *layer = "libmpichfort.so.12";
#endif

typedef void Send(void *, int *, int *, int *, int *, int *, int *);
typedef void Barrier(int *, int *);

static void handler(MPI_Comm *, int *, ...) { throw 42; }

// Overwrites what calls that are over have left on the stack.
__attribute__((noinline)) static void overwrite(int deep) {
    volatile char bytes[4096];
    memset((void *)bytes, 0xee, sizeof bytes);
    if (deep)
        overwrite(deep - 1);
}

__attribute__((noinline)) static void deeper(int words, Send *send, int *comm) {
    char *room = (char *)alloca(words * 16 + 16);
    asm volatile("" : : "r"(room) : "memory");
    int buffer = 0, count = 1, type = MPI_Type_c2f(MPI_INT), nobody = 99, tag = 5, error = 0;
    send(&buffer, &count, &type, &nobody, &tag, comm, &error);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Errhandler throwing;
    MPI_Comm_create_errhandler(handler, &throwing);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, throwing);
    if (!dlopen(layer, RTLD_NOW | RTLD_GLOBAL))
        return 3;
    Send *send = (Send *)dlsym(RTLD_DEFAULT, "mpi_send_");
    Barrier *barrier = (Barrier *)dlsym(RTLD_DEFAULT, "mpi_barrier_");
    int comm = MPI_Comm_c2f(MPI_COMM_WORLD), error = 0;
    try {
        deeper(atoi(argv[1]), send, &comm);
    } catch (int thrown) {
        printf("caught %d\n", thrown);
    }
    overwrite(2);
    if (argc > 2)
        barrier(&comm, &error);
    MPI_Finalize();
    puts("end");
}
