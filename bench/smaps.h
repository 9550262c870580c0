/* Put in front of a program: each rank copies what the kernel says of its memory to $SMAPS.<rank> when it calls
 * MPI_Allreduce for the $SMAPS_AT-th time, in the midst of its work. Calls nothing of MPI itself. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void copy_smaps(void)
{
    static int times;
    if (++times != atoi(getenv("SMAPS_AT")))
        return;
    char name[4096], buffer[4096];
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    snprintf(name, sizeof name, "%s.%s", getenv("SMAPS"), rank);
    FILE *in = fopen("/proc/self/smaps", "r"), *out = fopen(name, "w");
    if (!in || !out)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, in)) > 0;)
        fwrite(buffer, 1, got, out);
    fclose(in);
    fclose(out);
}

#define MPI_Allreduce(...) (copy_smaps(), MPI_Allreduce(__VA_ARGS__))
