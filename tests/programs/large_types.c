/* Datatypes and packing with counts of type MPI_Count, one of them beyond what an int holds. */
#include "common.h"

static int from[256], to[256];

static void exchange(MPI_Datatype *type)
{
    MPI_Count bytes, lb, extent, true_lb, true_extent, integers, addresses, large, types, counts[16];
    MPI_Datatype parts[4];
    MPI_Aint places[8];
    int combiner, numbers[16];
    MPI_Type_commit(type);
    MPI_Type_size_c(*type, &bytes);
    MPI_Type_get_extent_c(*type, &lb, &extent);
    MPI_Type_get_true_extent_c(*type, &true_lb, &true_extent);
    checksum += bytes + lb + extent + true_lb + true_extent;
    MPI_Type_get_envelope_c(*type, &integers, &addresses, &large, &types, &combiner);
    MPI_Type_get_contents_c(*type, integers, addresses, large, types, numbers, places, counts, parts);
    see(numbers, (int)integers);
    if (extent <= (MPI_Count)sizeof from) {
        memset(to, 0, sizeof to);
        MPI_Sendrecv_c(from, 1, *type, (rank + 1) % size, 1, to, 1, *type, (rank + size - 1) % size, 1,
                       MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        see(to, 32);
    }
    MPI_Type_free(type);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int i = 0; i < 256; i++)
        from[i] = rank * 1000 + i;
    MPI_Count lengths[3] = {2, 1, 3}, gaps[3] = {0, 4, 8}, bytes[3] = {0, 16, 32}, sizes[2] = {8, 8},
              parts[2] = {3, 4}, starts[2] = {2, 1};
    MPI_Datatype kinds[3] = {MPI_INT, MPI_INT, MPI_INT}, type;
    int distribs[1] = {MPI_DISTRIBUTE_BLOCK}, dargs[1] = {MPI_DISTRIBUTE_DFLT_DARG}, grid[1] = {size};
    MPI_Type_contiguous_c(5, MPI_INT, &type);
    exchange(&type);
    MPI_Type_contiguous_c(3000000000, MPI_CHAR, &type);
    exchange(&type);
    MPI_Type_vector_c(3, 2, 4, MPI_INT, &type);
    exchange(&type);
    MPI_Type_create_hvector_c(3, 1, 24, MPI_INT, &type);
    exchange(&type);
    MPI_Type_indexed_c(3, lengths, gaps, MPI_INT, &type);
    exchange(&type);
    MPI_Type_create_hindexed_c(3, lengths, bytes, MPI_INT, &type);
    exchange(&type);
    MPI_Type_create_indexed_block_c(3, 2, gaps, MPI_INT, &type);
    exchange(&type);
    MPI_Type_create_hindexed_block_c(3, 2, bytes, MPI_INT, &type);
    exchange(&type);
    MPI_Type_create_struct_c(3, lengths, bytes, kinds, &type);
    exchange(&type);
    MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    exchange(&type);
    MPI_Type_create_darray_c(size, rank, 1, sizes, distribs, dargs, grid, MPI_ORDER_C, MPI_INT, &type);
    exchange(&type);
    MPI_Type_create_resized_c(MPI_INT, -4, 16, &type);
    exchange(&type);

    char buffer[256];
    MPI_Count position = 0, needed;
    MPI_Pack_size_c(4, MPI_INT, MPI_COMM_WORLD, &needed);
    MPI_Pack_c(from, 4, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
    position = 0;
    MPI_Unpack_c(buffer, sizeof buffer, &position, to, 4, MPI_INT, MPI_COMM_WORLD);
    see(to, 4);
    position = 0;
    MPI_Pack_external_size_c("external32", 4, MPI_INT, &needed);
    MPI_Pack_external_c("external32", from, 4, MPI_INT, buffer, sizeof buffer, &position);
    position = 0;
    MPI_Unpack_external_c("external32", buffer, sizeof buffer, &position, to, 4, MPI_INT);
    see(to, 4);
    checksum += needed;
    finish("large_types");
    return 0;
}
