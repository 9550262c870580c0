/* Calls from ten places, by ways that differ: through other functions, function pointers and recursions, from frames of
 * changing size. Arguments: how deep the recursions go, and "die" to end before MPI_Finalize. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))
/* Nothing is left out of a stack because its call came last. */
#define END __asm__ volatile("")

static int rank, size;

static APART void ping(void)
{
    int out = rank, in;
    MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 1, &in, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    END;
}

static APART void exchange(void)
{
    int out = rank, in;
    MPI_Request requests[2];
    MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    END;
}

static APART void direct(int depth)
{
    ping();
    if (depth > 0) {
        direct(depth - 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    END;
}

static APART void odd(int depth);

static APART void even(int depth)
{
    ping();
    if (depth > 0) {
        odd(depth - 1);
    }
    END;
}

static APART void odd(int depth)
{
    if (depth > 0) {
        even(depth - 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    END;
}

static APART void sized(int bytes)
{
    char room[bytes];
    memset(room, 1, (size_t)bytes);
    __asm__ volatile("" : : "r"(room) : "memory");
    ping();
    END;
}

static APART void first(void (*call)(void))
{
    call();
    END;
}

static APART void second(void (*call)(void))
{
    call();
    END;
}

static APART void third(void (*call)(void))
{
    call();
    END;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int depth = argc > 1 ? atoi(argv[1]) : 4;
    void (*ways[])(void (*)(void)) = {first, second, third};
    for (int step = 0; step < 12; step++) {
        exchange();
        direct(depth);
        even(2 * depth);
        sized(64 + 48 * (step % 5));
        ways[step % 3](ping);
        ways[step % 3](exchange);
    }
    if (argc > 2 && strcmp(argv[2], "die") == 0) {
        abort();
    }
    MPI_Finalize();
    return 0;
}
