// A library that Python loads: it takes a lock of its own around MPI, as many do. Everybody waits for the other to be there.
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int inside, asked;

// Calls MPI with the lock, while another thread waits for the lock.
int locked_barrier(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&inside, 1);
    while (!atomic_load(&asked))
        sched_yield();
    int error = MPI_Barrier(MPI_COMM_SELF);
    pthread_mutex_unlock(&lock);
    return error;
}

int is_inside(void)
{
    return atomic_load(&inside);
}

void take_lock(void)
{
    atomic_store(&asked, 1);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}
