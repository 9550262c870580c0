/* Memory of every kind, given out by whatever allocator this process has, sent, checked, and given back, also by others
 * than it was asked for by: the C library allocates for the program, threads for each other.
 * argv[1]: an allocator to be opened half way. Prints what came of it; 27 calls a rank. */
#include <dlfcn.h>
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <string>
#include <vector>

static int rank, size, bad;
static long sum;

static void check(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "allocators: %s\n", what);
        bad = 1;
    }
}

/* One call of MPI: the first 64 bytes go around the ring. */
static void pass(void *memory, const char *what)
{
    char in[64], *out = (char *)memory;
    check(memory != NULL, what);
    for (int i = 0; i < 64; i++)
        out[i] = (char)(rank + i);
    MPI_Sendrecv(out, 64, MPI_CHAR, (rank + 1) % size, 0, in, 64, MPI_CHAR, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 64; i++) {
        check(in[i] == (char)((rank + size - 1) % size + i), what);
        sum += in[i];
    }
}

struct alignas(128) Wide {
    char bytes[256];
};

static void *allocate(void *)
{
    char *memory = (char *)malloc(3000);
    for (int i = 0; i < 500; i++) {
        free(malloc(i * 7));
        memory = (char *)realloc(memory, 3000 + i * 11);
        delete new std::string(i % 90, 'x');
    }
    return memory;
}

static void all_kinds()
{
    char *plain = (char *)malloc(1000), *zeroed = (char *)calloc(30, 40);
    for (int i = 0; i < 1200; i++)
        check(zeroed[i] == 0, "calloc");
    check(malloc_usable_size(plain) >= 1000, "malloc_usable_size");
    pass(plain, "malloc");
    pass(zeroed, "calloc");
    memset(plain, 7, 1000);
    plain = (char *)realloc(plain, 200000);
    check(plain[999] == 7, "realloc");
    pass(plain, "realloc");
    plain = (char *)reallocarray(plain, 100, 20);
    pass(plain, "reallocarray");
    void *aligned = aligned_alloc(64, 640), *page = NULL, *line = memalign(256, 512);
    check(posix_memalign(&page, 4096, 8192) == 0, "posix_memalign");
    check((size_t)aligned % 64 == 0 && (size_t)page % 4096 == 0 && (size_t)line % 256 == 0, "alignment");
    pass(aligned, "aligned_alloc");
    pass(page, "posix_memalign");
    pass(line, "memalign");
    void *whole[] = {plain, zeroed, aligned, page, line};
    for (void *memory : whole)
        free(memory);

    char *copy = strdup("the C library allocates this, and the program gives it back: see what comes of that");
    char *text = NULL, *read = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    fprintf(stream, "%080d\n", rank);
    fclose(stream);
    stream = fmemopen(text, length, "r");
    check(getline(&read, &length, stream) == 81, "getline");
    fclose(stream);
    pass(copy, "strdup");
    pass(read, "getline");
    free(copy);
    free(text);
    free(read);
    free(realpath("/", NULL));

    std::vector<char> vector(5000);
    char *array = new char[700], *perhaps = new (std::nothrow) char[900];
    Wide *wide = new Wide;
    check((size_t)wide % 128 == 0, "new with an alignment");
    pass(vector.data(), "vector");
    pass(array, "new[]");
    delete[] array;
    delete[] perhaps;
    delete wide;

    pthread_t threads[2];
    for (pthread_t &thread : threads)
        pthread_create(&thread, NULL, allocate, NULL);
    for (pthread_t &thread : threads) {
        void *memory;
        pthread_join(thread, &memory);
        check(((char *)memory) != NULL, "a thread's");
        free(memory);
    }
}

int main(int argc, char **argv)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        free(allocate(NULL));
        _exit(0);
    }
    check(waitpid(child, &status, 0) == child && status == 0, "a child's");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    all_kinds();
    void *opened = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    all_kinds();
    int worst = 0;
    MPI_Allreduce(&bad, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("allocators: %ld, %s%s\n", sum, worst ? "bad" : "good",
               argc < 2 ? "" : opened ? ", opened" : ", not opened");
    MPI_Finalize();
    return worst;
}
