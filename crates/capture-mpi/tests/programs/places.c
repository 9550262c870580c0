/* Pointers of every kind, shown to MPI one after the other. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static double statics[10];

static void show(const void *pointer) {
    MPI_Aint address;
    MPI_Get_address(pointer, &address);
}

static void *elsewhere(void *memory) {
    free(memory);
    return NULL;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int local[2] = {0};
    char *a = malloc(100), *b = calloc(10, 100), *c = malloc(3 << 20);
    show(b), show(b + 999), show(a + 7), show(c + (2 << 20)), show(b);
    show(statics), show(statics + 1), show(local), show(local + 1), show(local);
    free(b);
    char *d = aligned_alloc(4096, 8192);
    show(d + 8191), show(a);
    c = realloc(c, 5 << 20);
    show(c), show(c + (5 << 20) - 1);
    char *e = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    show(e + 9999);
    munmap(e, 10000);
    e = strdup("libraries allocate too");
    show(e + 1);
    pthread_t thread;
    pthread_create(&thread, NULL, elsewhere, a);
    pthread_join(thread, NULL);
    for (int i = 0; i < 3; i++) {
        char *again = malloc(64 + i * 1000);
        show(again);
        free(again);
    }
    show(NULL);
    MPI_Finalize();
    free(c), free(d), free(e);
    return 0;
}
