/* Leaves a hundred calls of MPI by a jump out of an error handler, on the main thread and (Open MPI) on another one, from
 * various depths of the stack, and a few more out of a callback inside a call. Goes on calling all the while. */
#include "common.h"

#include <pthread.h>
#include <setjmp.h>

enum { JUMPS = 100 };

static __thread jmp_buf back, inner;
static __thread int in_callback;
static MPI_Comm failing;

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(in_callback ? inner : back, 1);
}

static OWN_FRAME int fail(int depth)
{
    volatile char room[200];
    room[0] = (char)depth;
    if (depth > 0)
        return fail(depth - 1) + room[0];
    int value = 1;
    MPI_Send(&value, 1, MPI_INT, 99, 0, failing);
    return room[0];
}

static OWN_FRAME int ask(int depth)
{
    volatile char room[300];
    room[0] = 1;
    if (depth > 0)
        return ask(depth - 1) + room[0];
    int flag;
    MPI_Initialized(&flag);
    return flag + room[0] - 1;
}

/* One call before each jump that is left, and one after it, sometimes from deeper down than the one that was left. */
static void jump(void)
{
    for (volatile int i = 0; i < JUMPS; i++)
        if (setjmp(back) == 0)
            fail(i % 7);
        else
            checksum += ask(i % 11);
}

/* Inside a call of MPI, leaves another one and goes on. */
static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    in_callback = 1;
    for (volatile int i = 0; i < 3; i++)
        if (setjmp(inner) == 0)
            fail(i);
        else
            ask(i);
    in_callback = 0;
    (void)count, (void)type;
    *(int *)inout += *(int *)in;
}

#ifdef OPEN_MPI
static void *other(void *unused)
{
    jump();
    return unused;
}
#endif

int main(int argc, char **argv)
{
    int value = 1, sum = 2;
    MPI_Errhandler handler;
    MPI_Op adding;
#ifdef OPEN_MPI
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#else
    /* With several threads MPICH calls an error handler with a lock in its hands, and cannot do without it. */
    start(&argc, &argv);
#endif
    MPI_Comm_dup(MPI_COMM_SELF, &failing);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(failing, handler);
    jump();
#ifdef OPEN_MPI
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
#endif
    MPI_Op_create(add, 1, &adding);
    MPI_Reduce_local(&value, &sum, 1, MPI_INT, adding);
    checksum += sum;
    MPI_Barrier(MPI_COMM_WORLD);
    finish("hundred_jumps");
    return 0;
}
