/* Ranks that are outside MPI until there is a file `go`: one computes, one sleeps, and one is in a system call that fails with EINTR if
   somebody stops it for a moment. Whoever looks at them must change none of it: a wrong result ends the run. Four ranks. */
#include <mpi.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

static int gone_on(void) { return access("go", F_OK) == 0; }

/* Numbers in registers, of both kinds. How far it comes is a matter of time, what it must have by then is not. */
__attribute__((noinline)) static int kernel(void) {
    double halves = 0;
    unsigned long steps = 0, ones = 0;
    do {                                        /* kernel begins */
        for (int n = 0; n < 4096; n++) {
            __asm__ volatile("" : "+r"(ones));
            halves += 0.5;
            ones += 1;
        }
        steps += 4096;
    } while (steps % (1 << 20) != 0 || !gone_on()); /* kernel ends */
    return halves == 0.5 * (double)steps && ones == steps;
}

__attribute__((noinline)) static int sleeps(void) {
    int well = 1;
    while (!gone_on()) {
        struct timespec left, time = {0, 200 * 1000 * 1000};
        /* In short pieces, of which none may be cut short. */
        well = well && nanosleep(&time, &left) == 0; /* sleeps */
    }
    return well;
}

__attribute__((noinline)) static int waits(void) {
    int well = 1, files = inotify_init(), set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    char told[4096];
    inotify_add_watch(files, ".", IN_CREATE);
    epoll_ctl(set, EPOLL_CTL_ADD, files, &event);
    while (!gone_on()) {
        well = well && epoll_wait(set, &event, 1, -1) == 1; /* waits */
        well = well && read(files, told, sizeof told) > 0;
    }
    return well;
}

int main(int argc, char **argv) {
    int rank, size, well = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) MPI_Comm_size(MPI_COMM_WORLD, &size); /* before it computes */
    if (rank == 1) well = kernel();                      /* main computes */
    if (rank == 2) well = sleeps();
    if (rank == 3) well = waits();
    MPI_Barrier(MPI_COMM_WORLD);
    if (!well) MPI_Abort(MPI_COMM_WORLD, 10 + rank);
    MPI_Finalize();
    return 0;
}
