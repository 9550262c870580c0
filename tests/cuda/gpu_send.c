/* Sends around the ring from every kind of memory a GPU's runtime allocates, each message with a tag of its own.
 *
 * With the argument "empty" the messages have no bytes: so it runs on a real GPU with an MPI library that cannot read the
 * device's memory. -DHIP uses HIP's names. With -DLATE the runtime is not linked but loaded, from the path that follows.
 * No headers of CUDA or HIP are needed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HIP
#define NAME(name) hip##name
#define NAME_OF(name) "hip" #name
#define HostAlloc HostMalloc
#define HostAllocFree HostFree
#else
#define NAME(name) cuda##name
#define NAME_OF(name) "cuda" #name
#define HostAllocFree FreeHost
#endif

#ifdef LATE
#define FUNCTION(name, ...) static int (*NAME(name))(__VA_ARGS__)
#define LOAD(name) load(NAME_OF(name), (void **)&NAME(name))
#else
#define FUNCTION(name, ...) int NAME(name)(__VA_ARGS__)
#endif
#define CALL(name) CALL_(name)
#define CALL_(name) NAME(name)

FUNCTION(GetDeviceCount, int *);
FUNCTION(SetDevice, int);
FUNCTION(Malloc, void **, size_t);
FUNCTION(MallocPitch, void **, size_t *, size_t, size_t);
FUNCTION(MallocManaged, void **, size_t, unsigned);
FUNCTION(MallocHost, void **, size_t);
FUNCTION(MallocAsync, void **, size_t, void *);
FUNCTION(Free, void *);
FUNCTION(FreeHost, void *);
FUNCTION(FreeAsync, void *, void *);
#ifdef HIP
FUNCTION(HostMalloc, void **, size_t, unsigned);
FUNCTION(HostFree, void *);
#else
FUNCTION(HostAlloc, void **, size_t, unsigned);
#endif

static int rank, ranks, empty, sum;

static void check(int code, const char *what) {
    if (code == 0) return;
    fprintf(stderr, "%s: error %d\n", what, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, #call)

#ifdef LATE
static void *runtime;

static void load(const char *name, void **function) {
    /* Nobody else may have it: a program that probes for a runtime must find none. */
    if (dlsym(RTLD_DEFAULT, name)) check(-1, name);
    if (!(*function = dlsym(runtime, name))) check(-1, dlerror());
}
#endif

/* 64 bytes from `from` to the next rank; from the one before into `to`. */
static void pass(int tag, char *from, char *to) {
    int count = empty ? 0 : 64;
    if (!empty) {
        memset(to, 0, 64);
        memset(from, tag + 1 + rank, 64);
    }
    MPI_Sendrecv(from, count, MPI_CHAR, (rank + 1) % ranks, tag, to, count, MPI_CHAR, (rank + ranks - 1) % ranks, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!empty) sum += to[0] + to[63];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    empty = argc > 1 && strcmp(argv[1], "empty") == 0;
#ifdef LATE
    if (!(runtime = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL))) check(-1, dlerror());
    LOAD(GetDeviceCount), LOAD(SetDevice), LOAD(Malloc), LOAD(MallocPitch), LOAD(MallocManaged), LOAD(MallocHost);
    LOAD(HostAlloc), LOAD(MallocAsync), LOAD(Free), LOAD(FreeHost), LOAD(FreeAsync);
#endif
    void *a, *b, *c, *pitched, *managed, *host, *other, *later, *far, *nothing;
    char *heap = malloc(128);
    size_t pitch;
    int count;
    CHECK(NAME(GetDeviceCount)(&count));
    CHECK(NAME(SetDevice)(rank % count));

    CHECK(NAME(Malloc)(&a, 1000));
    CHECK(NAME(Malloc)(&b, 1000));
    pass(0, (char *)a + 16, b);
    pass(1, heap + 8, b);

    /* Freed: the next one has its name, wherever it lies. */
    CHECK(NAME(Free)(a));
    CHECK(NAME(Malloc)(&c, 5000));
    pass(2, (char *)c + 4936, b);

    CHECK(NAME(MallocPitch)(&pitched, &pitch, 500, 10));
    pass(3, (char *)pitched + 9 * pitch + 64, b);
    CHECK(NAME(MallocManaged)(&managed, 300, 1));
    pass(4, (char *)managed + 32, b);
    CHECK(NAME(MallocHost)(&host, 300));
    CHECK(CALL(HostAlloc)(&other, 300, 0));
    pass(5, host, b);
    pass(6, (char *)other + 8, b);

    CHECK(NAME(MallocAsync)(&later, 400, NULL));
    pass(7, later, b);
    CHECK(NAME(FreeAsync)(later, NULL));
    CHECK(NAME(MallocAsync)(&later, 800, NULL));
    pass(8, (char *)later + 8, b);

    CHECK(NAME(SetDevice)((rank + 1) % count));
    CHECK(NAME(Malloc)(&far, 64));
    pass(9, far, b);

    CHECK(NAME(Malloc)(&nothing, 0));
    CHECK(NAME(Free)(nothing));
    CHECK(NAME(Free)(b));
    CHECK(NAME(Free)(c));
    CHECK(NAME(Free)(pitched));
    CHECK(NAME(Free)(managed));
    CHECK(NAME(FreeHost)(host));
    CHECK(CALL(HostAllocFree)(other));
    CHECK(NAME(FreeAsync)(later, NULL));
    CHECK(NAME(Free)(far));

    /* All names are free again. */
    CHECK(NAME(MallocHost)(&host, 64));
    CHECK(NAME(Malloc)(&a, 64));
    pass(10, a, host);

    int total = 0;
    MPI_Reduce(&sum, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d\n", total);
    MPI_Finalize();
    return 0;
}
