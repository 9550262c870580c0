/* Functions that every thread may call whatever the thread level, called by all threads at once. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, CALLS = 100000 };

static void *look(void *unused) {
    (void)unused;
    for (int i = 0; i < CALLS; i++) {
        int flag;
        MPI_Initialized(&flag);
        MPI_Wtime();
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, look, NULL);
    for (int i = 0; i < CALLS / 10; i++) {
        int value = i;
        MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_SELF);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    puts("done");
    MPI_Finalize();
    return 0;
}
