/* Types of Fortran by their size, of which libraries have several. */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const int wanted[][2] = {{MPI_TYPECLASS_INTEGER, 4}, {MPI_TYPECLASS_INTEGER, 8}, {MPI_TYPECLASS_REAL, 4},
                             {MPI_TYPECLASS_REAL, 8},    {MPI_TYPECLASS_COMPLEX, 8}, {MPI_TYPECLASS_COMPLEX, 16}};
    for (int i = 0; i < (int)(sizeof wanted / sizeof *wanted); i++) {
        int in[4] = {0}, out[4] = {rank, i, 7, 9}, bytes;
        MPI_Datatype type;
        MPI_Type_match_size(wanted[i][0], wanted[i][1], &type);
        MPI_Type_size(type, &bytes);
        MPI_Sendrecv(out, 1, type, (rank + 1) % size, i, in, 1, type, (rank + size - 1) % size, i, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        see(in, 4);
    }
    finish("of_size");
    return 0;
}
