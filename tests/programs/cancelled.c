/* Receives from one rank that are cancelled before a message comes, and others after them that get it. Who sends waits for
   a file: in a replay, where nothing is waited for but MPI, the message may be there first. The fourth is persistent, unless
   a word says how many there are. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONG = 2000 };

static int value = 7, got;

static void wait_for(const char *name)
{
    struct stat there;
    for (int i = 0; stat(name, &there) != 0; i++) {
        if (i == 60000)
            abort();
        usleep(1000);
    }
}

static void take(int tag)
{
    FILE *file;
    char name[32];
    snprintf(name, sizeof name, "go-%d", tag);
    if ((file = fopen(name, "w")) == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    fclose(file);
    MPI_Recv(&got, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Time for a message to come, were one on its way. */
static void talk_to_oneself(void)
{
    for (int i = 0; i < LONG; i++)
        MPI_Sendrecv(&value, 1, MPI_INT, 0, 9, &got, 1, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, most = argc > 1 ? atoi(argv[1]) : 4;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int tag = 1; tag <= most; tag++) {
        MPI_Request request;
        MPI_Status status;
        int yes = 1;
        if (rank == 1) {
            char name[32];
            snprintf(name, sizeof name, "go-%d", tag);
            wait_for(name);
            MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
        }
        if (rank == 0) {
            if (tag == 4) {
                MPI_Recv_init(&got, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &request);
                MPI_Start(&request);
            } else {
                MPI_Irecv(&got, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &request);
            }
            talk_to_oneself();
            MPI_Cancel(&request);
            if (tag == 2) {
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            } else if (tag == 3) {
                MPI_Request_free(&request);
            } else {
                MPI_Wait(&request, &status);
                MPI_Test_cancelled(&status, &yes);
            }
            if (!yes)
                fprintf(stderr, "it was not cancelled\n");
            take(tag);
            if (tag == 4) {
                /* This time it gets one. */
                MPI_Start(&request);
                MPI_Send(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
                MPI_Wait(&request, &status);
                MPI_Request_free(&request);
            }
        }
    }
    if (rank == 1 && most == 4) {
        MPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
