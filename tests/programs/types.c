/* Derived datatypes of every construction, each sent to oneself and to the right. */
#include "common.h"

#include <stddef.h>

static int from[256], to[256];

static void exchange(MPI_Datatype type)
{
    MPI_Status status;
    MPI_Aint lb, extent;
    int bytes, count;
    MPI_Type_commit(&type);
    MPI_Type_size(type, &bytes);
    MPI_Type_get_extent(type, &lb, &extent);
    int numbers[3] = {bytes, (int)lb, (int)extent};
    see(numbers, 3);
    memset(to, 0, sizeof to);
    MPI_Sendrecv(from, 1, type, (rank + 1) % size, 80, to, 1, type, (rank + size - 1) % size, 80, MPI_COMM_WORLD,
                 &status);
    MPI_Get_count(&status, type, &count);
    MPI_Get_elements(&status, type, &count);
    see(to, 64);
    MPI_Bcast(to, 1, type, 0, MPI_COMM_WORLD);
    see(to, 64);
}

struct particle {
    double place[3];
    int id;
    char kind;
};

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int i = 0; i < 256; i++)
        from[i] = rank * 1000 + i;
    int lengths[3] = {2, 1, 3}, gaps[3] = {0, 4, 8}, sizes[2] = {8, 8}, parts[2] = {3, 4}, starts[2] = {2, 1};
    MPI_Aint bytes[3] = {0, 16, 32};
    MPI_Datatype type, inner, copy;

    MPI_Type_contiguous(5, MPI_INT, &type);
    exchange(type);
    MPI_Type_free(&type);
    MPI_Type_vector(3, 2, 4, MPI_INT, &type);
    exchange(type);
    MPI_Type_dup(type, &copy);
    exchange(copy);
    MPI_Type_free(&type);
    MPI_Type_free(&copy);
    MPI_Type_create_hvector(3, 1, 24, MPI_INT, &type);
    exchange(type);
    MPI_Type_free(&type);
    MPI_Type_indexed(3, lengths, gaps, MPI_INT, &type);
    exchange(type);
    MPI_Type_free(&type);
    MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &type);
    exchange(type);
    MPI_Type_free(&type);
    MPI_Type_create_indexed_block(3, 2, gaps, MPI_INT, &type);
    exchange(type);
    MPI_Type_free(&type);
    MPI_Type_create_hindexed_block(3, 2, bytes, MPI_INT, &type);
    exchange(type);
    MPI_Type_free(&type);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    exchange(type);
    MPI_Type_free(&type);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, &type);
    exchange(type);
    MPI_Type_free(&type);
    MPI_Type_create_darray(4, rank % 4, 2, sizes, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
                           (int[]){MPI_DISTRIBUTE_DFLT_DARG, 2}, (int[]){2, 2}, MPI_ORDER_C, MPI_INT, &type);
    exchange(type);
    MPI_Type_free(&type);

    /* A type built of a type that is freed before its last use. */
    MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 24, &type);
    MPI_Type_free(&inner);
    MPI_Type_contiguous(3, type, &inner);
    MPI_Type_free(&type);
    exchange(inner);
    MPI_Type_free(&inner);

    MPI_Aint places[3] = {offsetof(struct particle, place), offsetof(struct particle, id),
                          offsetof(struct particle, kind)};
    MPI_Datatype kinds[3] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
    MPI_Type_create_struct(3, (int[]){3, 1, 1}, places, kinds, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(struct particle), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&inner);
    int integers, addresses, types, combiner, length;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    MPI_Type_get_envelope(MPI_INT, &integers, &addresses, &types, &combiner);
    MPI_Type_set_name(type, "particle");
    MPI_Type_get_name(type, name, &length);
    MPI_Type_get_name(MPI_DOUBLE, name, &length);
    MPI_Aint lb, extent;
    MPI_Type_get_true_extent(type, &lb, &extent);
    struct particle mine[4], theirs[4];
    memset(mine, 0, sizeof mine);
    memset(theirs, 0, sizeof theirs);
    for (int i = 0; i < 4; i++)
        mine[i].id = rank * 10 + i;
    MPI_Sendrecv(mine, 4, type, (rank + 1) % size, 81, theirs, 4, type, (rank + size - 1) % size, 81, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    see(&theirs[3].id, 1);
    MPI_Type_free(&type);

    /* Absolute addresses and MPI_BOTTOM. */
    MPI_Aint here[2];
    static int x, y[4];
    x = rank;
    y[0] = rank + 1;
    MPI_Get_address(&x, &here[0]);
    MPI_Get_address(y, &here[1]);
    MPI_Type_create_hindexed(2, (int[]){1, 4}, here, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(MPI_BOTTOM, 1, type, size - 1, MPI_COMM_WORLD);
    see(&x, 1);
    see(y, 4);
    MPI_Type_free(&type);

    /* Every size of predefined type. */
    char bytes_[16] = {0};
    MPI_Datatype plain[] = {MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE, MPI_SHORT, MPI_UNSIGNED_SHORT,
                            MPI_INT, MPI_UNSIGNED, MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG,
                            MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_WCHAR, MPI_C_BOOL, MPI_INT8_T, MPI_INT16_T,
                            MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T,
                            MPI_C_DOUBLE_COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_FLOAT_INT,
                            MPI_DOUBLE_INT, MPI_2INT, MPI_SHORT_INT, MPI_LONG_INT, MPI_PACKED};
    for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++)
        MPI_Bcast(bytes_, 1, plain[i], 0, MPI_COMM_SELF);
    finish("types");
}
