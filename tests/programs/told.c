/* Outcomes that are more than a number: a string, an array, a handle that is null, a status. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int ints[1], length, integers, addresses, types, combiner;
    int given[1231] = {0}, got[1231];
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Datatype many;
    MPI_Comm none;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_name(MPI_COMM_WORLD, "abcd");
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    MPI_Type_contiguous(4711, MPI_INT, &many);
    MPI_Type_get_envelope(many, &integers, &addresses, &types, &combiner);
    if (integers == 1) {
        MPI_Aint no_address[1];
        MPI_Datatype old[1];
        MPI_Type_get_contents(many, 1, 0, 1, ints, no_address, old);
    }
    MPI_Type_free(&many);
    MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &none);
    MPI_Sendrecv(given, 1231, MPI_INT, 0, 1, got, 1231, MPI_INT, 0, 1, MPI_COMM_SELF, &status);
    MPI_Finalize();
    return 0;
}
