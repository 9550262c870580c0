/* Threads that share a sum under a lock, and memory that one allocates and another frees. Nothing of MPI. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *work(void *given)
{
    int *number = given;
    for (int i = 0; i < 1000; i++) {
        char *piece = malloc((size_t)i + 1);
        piece[i] = (char)i;
        pthread_mutex_lock(&lock);
        sum += piece[i] + *number;
        pthread_mutex_unlock(&lock);
        free(piece);
    }
    free(number);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        int *number = malloc(sizeof *number);
        *number = i;
        pthread_create(&threads[i], NULL, work, number);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("threaded: %ld\n", sum);
    return 0;
}
