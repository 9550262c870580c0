/* Programs that hang or die, one a word, on three ranks or more: what the last call of each rank was has to be told. The
   comments behind the calls are what the tests look lines up by. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

/* Ranks that have nothing to wait for are outside of MPI until somebody ends them. */
static void stay(void) {
    for (;;) sleep(1);
}

static void never_sent(void) {
    int number;
    if (rank == 2) MPI_Recv(&number, 1, MPI_INT, 1, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* never sent */
    stay();
}

static void circle(void) {
    int number;
    MPI_Recv(&number, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* circle */
}

static void missed(void) {
    int number, others;
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_size(twin, &others);
    MPI_Barrier(twin); /* all came */
    if (rank == 1) MPI_Recv(&number, 1, MPI_INT, 0, 3, twin, MPI_STATUS_IGNORE); /* instead */
    MPI_Barrier(twin); /* missed */
}

/* In what does not match the last rank takes no part, so that nobody's call can end, or fail. */
static void functions(void) {
    int in = 1, out = 0;
    if (rank == 0) MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* another function */
    if (rank == 1) MPI_Barrier(MPI_COMM_WORLD);                                   /* a function */
    stay();
}

static void roots(void) {
    int number = 0;
    if (rank < size - 1) MPI_Bcast(&number, 1, MPI_INT, rank == 0 ? 1 : 0, MPI_COMM_WORLD); /* roots */
    stay();
}

static void counts(void) {
    int numbers[8] = {0};
    if (rank < size - 1) MPI_Bcast(numbers, rank == 0 ? 8 : 4, MPI_INT, size - 1, MPI_COMM_WORLD); /* counts */
    stay();
}

static void requests(void) {
    int numbers[3];
    MPI_Request all[2], one;
    if (rank == 0) {
        MPI_Irecv(&numbers[0], 1, MPI_INT, 1, 11, MPI_COMM_WORLD, &all[0]);
        MPI_Irecv(&numbers[1], 1, MPI_INT, 2, 12, MPI_COMM_WORLD, &all[1]);
        MPI_Waitall(2, all, MPI_STATUSES_IGNORE); /* two requests */
    }
    if (rank == 1) {
        MPI_Irecv(&numbers[2], 1, MPI_INT, 2, 13, MPI_COMM_WORLD, &one);
        MPI_Wait(&one, MPI_STATUS_IGNORE); /* one request */
    }
    stay();
}

/* Sends that are over when they begin, and what is with nobody: libraries have one handle for all of them. Some are over, and one
   that is older is not waited for. */
static void shared(void) {
    int in = 0, out = 0;
    MPI_Request old, older, all[3], mixed[4], copy[4];
    MPI_Status statuses[4];
    if (rank != 2) {
        MPI_Isend(&out, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, &old);
        MPI_Wait(&old, MPI_STATUS_IGNORE);
        MPI_Isend(&out, 1, MPI_INT, 2, 6, MPI_COMM_WORLD, &older);
    }
    if (rank == 0) {
        MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &mixed[0]);
        MPI_Isend(&out, 1, MPI_INT, 2, 3, MPI_COMM_WORLD, &mixed[1]);
        MPI_Isend(&out, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &mixed[2]);
        MPI_Irecv(&in, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, &mixed[3]);
        memcpy(copy, mixed, sizeof copy);
        MPI_Waitall(4, copy, statuses); /* copied */
    }
    if (rank == 1) {
        MPI_Isend(&out, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &all[0]);
        MPI_Isend(&out, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &all[1]);
        MPI_Irecv(&in, 1, MPI_INT, 2, 9, MPI_COMM_WORLD, &all[2]);
        MPI_Waitall(3, all, statuses); /* one handle */
    }
    stay();
}

static void truncated(void) {
    int numbers[8] = {0};
    MPI_Barrier(MPI_COMM_WORLD); /* who ends the others must not come before they have begun */
    if (rank == 0) MPI_Send(numbers, 8, MPI_INT, 1, 5, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(numbers, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* truncated */
    MPI_Barrier(MPI_COMM_WORLD);
}

static void segv(void) {
    volatile int *nowhere = (int *)8;
    MPI_Barrier(MPI_COMM_WORLD); /* before the fault */
    if (rank == 1) *nowhere = 1; /* fault */
    MPI_Barrier(MPI_COMM_WORLD); /* after the fault */
}

/* Rank 0 has sent and waits for rank 2; rank 1 has received and waits for what comes next: no circle. */
static void exchange(void) {
    int out = 0, in;
    if (rank == 0) MPI_Sendrecv(&out, 1, MPI_INT, 1, 1, &in, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* both */
    if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the next one */
    stay();
}

/* A communicator that was freed gives its name to nobody: calls on it are not counted for the next one. */
static void again(void) {
    MPI_Comm half, twin;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &half);
    for (int n = 0; n < (rank == 0 ? 1 : 4); n++) MPI_Barrier(half);
    MPI_Comm_free(&half);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    if (rank == 2) stay();
    MPI_Barrier(twin); /* the first one */
}

/* Errors that return and those that a handler sees are none that ended anything. */
static void returned(void) {
    int number = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Send(&number, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) MPI_Recv(&number, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* after an error */
    stay();
}

/* Kinds of hangs that programs have, one after the other: most ranks go on to MPI_Finalize. */
static int number, many[1 << 20];

static void wrong_tag(void) {
    if (rank == 0) MPI_Send(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&number, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void wrong_comm(void) {
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    if (rank == 0) MPI_Send(&number, 1, MPI_INT, 1, 5, twin);
    if (rank == 1) MPI_Recv(&number, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sends(void) {
    MPI_Send(many, 1 << 20, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD);
    MPI_Recv(many, 1 << 20, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void absent(void) {
    MPI_Barrier(MPI_COMM_WORLD); /* before it is lost */
    if (rank == 2) stay();
    MPI_Barrier(MPI_COMM_WORLD); /* the others */
}

static void skipped(void) {
    if (rank != 1) MPI_Bcast(&number, 1, MPI_INT, 1, MPI_COMM_WORLD);
}

static void waitall(void) {
    MPI_Request all[3];
    int back;
    if (rank == 0) MPI_Recv(&number, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 1) return;
    MPI_Isend(&number, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &all[0]);
    MPI_Irecv(&back, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &all[1]);
    MPI_Irecv(&number, 1, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD, &all[2]);
    MPI_Waitall(3, all, MPI_STATUSES_IGNORE); /* waits for all */
}

static void probe(void) {
    if (rank == 2) MPI_Probe(0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ssend(void) {
    if (rank == 0) MPI_Ssend(&number, 1, MPI_INT, 2, 3, MPI_COMM_WORLD);
    if (rank == 2) stay();
}

static void persistent(void) {
    MPI_Request request;
    if (rank == 1) MPI_Send(&number, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    if (rank != 0) return;
    MPI_Recv_init(&number, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &request);
    for (int n = 0; n < 2; n++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void anybody(void) {
    if (rank == 0) MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void all_from_anybody(void) {
    MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void somebody(void) {
    if (rank == 0) MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    stay();
}

static void itself(void) {
    if (rank == 1) MPI_Recv(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* from itself */
}

static void fence(void) {
    MPI_Win window;
    MPI_Win_create(many, sizeof many, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window); /* the first fence */
    if (rank == 1) stay();
    MPI_Win_fence(0, window); /* the second fence */
}

static void twin(void) {
    MPI_Comm other;
    if (rank == 0) stay();
    MPI_Comm_dup(MPI_COMM_WORLD, &other); /* made by two */
}

/* The sender waits for the receiver in its turn. */
static void wrong_tag_then_barrier(void) {
    wrong_tag();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void wrong_tag_from_anybody(void) {
    if (rank == 0) MPI_Send(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void polls(void) {
    MPI_Request request;
    int flag = 0;
    if (rank == 1) {
        MPI_Irecv(&number, 1, MPI_INT, 2, 13, MPI_COMM_WORLD, &request);
        while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* polls */
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A library may end the others as soon as it is gone. */
static void leaves(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Two threads of a rank in different calls. */
static void *other_thread(void *unused) {
    int number;
    MPI_Recv(&number, 1, MPI_INT, 1, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* another thread */
    return unused;
}

static void threads(void) {
    pthread_t other;
    int number;
    if (rank == 0) {
        pthread_create(&other, NULL, other_thread, NULL);
        MPI_Recv(&number, 1, MPI_INT, 2, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the first thread */
    }
    stay();
}

/* A fault of one thread, while the other is in a call. */
static void *faulty_thread(void *unused) {
    volatile int *nowhere = (int *)8;
    MPI_Barrier(MPI_COMM_SELF); /* before its fault */
    *nowhere = 1;               /* fault of a thread */
    return unused;
}

static void thread_segv(void) {
    pthread_t other;
    int number;
    if (rank == 1) {
        pthread_create(&other, NULL, faulty_thread, NULL);
        MPI_Recv(&number, 1, MPI_INT, 2, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    stay();
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"never-sent", never_sent}, {"circle", circle}, {"missed", missed}, {"functions", functions},
        {"roots", roots}, {"counts", counts}, {"requests", requests}, {"shared", shared}, {"truncated", truncated}, {"segv", segv},
        {"returned", returned}, {"exchange", exchange}, {"again", again},
        {"wrong-tag", wrong_tag}, {"wrong-comm", wrong_comm}, {"sends", sends}, {"absent", absent},
        {"skipped", skipped}, {"waitall", waitall}, {"probe", probe}, {"ssend", ssend}, {"persistent", persistent},
        {"anybody", anybody}, {"all-from-anybody", all_from_anybody}, {"somebody", somebody}, {"itself", itself},
        {"fence", fence}, {"dup", twin},
        {"wrong-tag-barrier", wrong_tag_then_barrier}, {"wrong-tag-any", wrong_tag_from_anybody}, {"polls", polls}, {"leaves", leaves},
        {"threads", threads}, {"threads-segv", thread_segv},
    };
    if (argc > 1 && strncmp(argv[1], "threads", 7) == 0) {
        int provided;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++) {
        if (argc > 1 && strcmp(argv[1], all[n].name) == 0) all[n].run();
    }
    MPI_Finalize(); /* the end */
    return 0;
}
