/* Calls that all ranks make together, then a wait for a file, then the end: awaiting FOLDER. Each rank says that it waits by
 * a file of its own, ready.RANK. FOLDER/go ends the wait. */
#include "common.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    char path[4096];
    if (argc < 2)
        return 2;
    start(&argc, &argv);
    int mine = rank, theirs = -1, right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < 20; i++)
        MPI_Sendrecv(&mine, 1, MPI_INT, right, i, &theirs, 1, MPI_INT, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    see(&theirs, 1);
    snprintf(path, sizeof path, "%s/ready.%d", argv[1], rank);
    FILE *file = fopen(path, "w");
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "%s/go", argv[1]);
    while (access(path, F_OK) != 0)
        usleep(10000);
    finish("awaiting");
    return 0;
}
