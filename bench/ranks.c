/* How long MPI_Finalize takes, and what it costs: ranks STEPS [different]. Each rank says so on stdout when it is over:
 *
 *     rank 3 init 0.213 finalize 0.031 cpu 0.012
 *
 * Before that rank 0 says what is in the directory RANKS_PARTS: `files 64 bytes 4456448`, as much as they take on disk.
 *
 * The ranks do the same, STEPS times; or all of them different things, STEPS calls each, that nothing folds. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

static double wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static double cpu(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static void look(const char *directory)
{
    long files = 0, bytes = 0;
    DIR *open = directory ? opendir(directory) : NULL;
    for (struct dirent *entry; open && (entry = readdir(open));) {
        char path[4096];
        struct stat about;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (lstat(path, &about) == 0 && S_ISREG(about.st_mode)) {
            files++;
            bytes += about.st_blocks * 512;
        }
    }
    if (open)
        closedir(open);
    printf("files %ld bytes %ld\n", files, bytes);
}

/* Calls that need no other rank, drawn from the rank's own numbers. */
static void draw(int rank, int calls)
{
    static double out[4096], in[4096];
    unsigned long state = 0x9e3779b97f4a7c15ul * (rank + 1);
    for (int i = 0; i < calls; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        int count = state >> 33 & 4095, tag = (state >> 45) % 100;
        switch ((state >> 52) % 3) {
        case 0:
            MPI_Send(out, count, MPI_DOUBLE, MPI_PROC_NULL, tag, MPI_COMM_WORLD);
            break;
        case 1:
            MPI_Ssend(out, count, MPI_DOUBLE, MPI_PROC_NULL, tag, MPI_COMM_WORLD);
            break;
        default:
            MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
        }
    }
}

int main(int argc, char **argv)
{
    int rank, size, mine, theirs;
    double begun = wall();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double up = wall();
    mine = rank;
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    if (argc > 2)
        draw(rank, steps);
    else
        for (int i = 0; i < steps; i++)
            MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, 0, &theirs, 1, MPI_INT, (rank + size - 1) % size, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        look(getenv("RANKS_PARTS"));
    MPI_Barrier(MPI_COMM_WORLD);
    double before = wall(), used = cpu();
    MPI_Finalize();
    printf("rank %d init %.3f finalize %.3f cpu %.4f\n", rank, up - begun, wall() - before, cpu() - used);
    return 0;
}
