/* Datatypes that span several allocations: displacements are distances between them, as in HPL. Some are negative, one is that of
   the stack from the heap. With an argument all of them are small and of the heap, as near to each other as in HPL. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONG = 40000, NEAR = 1000, SHORT = 7, FEW = 3 };

static double sum;
static int length = LONG;

/* A type of the three arrays, counted from the first. */
static MPI_Datatype together(double *first, int *second, double *third)
{
    MPI_Aint places[3], distances[3];
    MPI_Datatype type, parts[3] = {MPI_DOUBLE, MPI_INT, MPI_DOUBLE};
    int lengths[3] = {length, SHORT, FEW};
    MPI_Get_address(first, &places[0]);
    MPI_Get_address(second, &places[1]);
    MPI_Get_address(third, &places[2]);
    for (int i = 0; i < 3; i++)
        distances[i] = places[i] - places[0];
    MPI_Type_create_struct(3, lengths, distances, parts, &type);
    MPI_Type_commit(&type);
    return type;
}

/* One kind of element, a length for all. */
static MPI_Datatype alike(double *first, double *second)
{
    MPI_Aint places[2], distances[2] = {0, 0};
    MPI_Datatype type, copy;
    MPI_Get_address(first, &places[0]);
    MPI_Get_address(second, &places[1]);
    distances[1] = places[1] - places[0];
    MPI_Type_create_hindexed_block(2, FEW, distances, MPI_DOUBLE, &type);
    MPI_Type_dup(type, &copy);
    MPI_Type_free(&type);
    MPI_Type_commit(&copy);
    return copy;
}

int main(int argc, char **argv)
{
    int rank, size;
    double numbers_here[2 * FEW] = {1, 2, 3}, *few = numbers_here, *got = few + FEW, *one, *two;
    int integers_here[SHORT] = {0}, *there = integers_here;
    if (argc > 1) {
        length = NEAR;
        few = calloc(FEW, sizeof *few);
        got = calloc(FEW, sizeof *got);
        there = calloc(SHORT, sizeof *there);
        if (!few || !got || !there)
            return 1;
        for (int i = 0; i < FEW; i++)
            few[i] = i + 1;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 3; round++) {
        int *numbers = malloc(SHORT * sizeof *numbers);
        one = malloc(length * sizeof *one);
        two = malloc(length * sizeof *two);
        if (!numbers || !one || !two)
            MPI_Abort(MPI_COMM_WORLD, 1);
        for (int i = 0; i < length; i++)
            one[i] = rank + i, two[i] = 0;
        for (int i = 0; i < SHORT; i++)
            numbers[i] = i;
        MPI_Datatype out = together(one, numbers, few), in = together(two, there, got), back = alike(two, one);
        MPI_Sendrecv(one, 1, out, (rank + 1) % size, 1, two, 1, in, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Bcast(two, 1, back, 0, MPI_COMM_WORLD);
        for (int i = 0; i < length; i++)
            sum += two[i];
        sum += got[FEW - 1] + there[SHORT - 1];
        MPI_Type_free(&out);
        MPI_Type_free(&in);
        MPI_Type_free(&back);
        free(numbers);
        free(one);
        free(two);
    }
    if (rank == 0)
        printf("%g\n", sum);
    MPI_Finalize();
    return 0;
}
