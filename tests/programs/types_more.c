/* What tells about datatypes, the external representation, and what MPI 3.0 removed but libraries still have. */
#include "common.h"

#ifdef OPEN_MPI
/* mpi.h keeps programs from these names; the library still has the functions. */
#undef MPI_Address
#undef MPI_Errhandler_create
#undef MPI_Errhandler_get
#undef MPI_Errhandler_set
#undef MPI_Type_extent
#undef MPI_Type_hindexed
#undef MPI_Type_hvector
#undef MPI_Type_lb
#undef MPI_Type_struct
#undef MPI_Type_ub
#endif

static int from[64], to[64];

/* Takes the type apart, and what it was made of. */
static void apart(MPI_Datatype type)
{
    int integers, addresses, types, combiner, numbers[16];
    MPI_Aint places[8];
    MPI_Datatype parts[4];
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    MPI_Type_get_contents(type, integers, addresses, types, numbers, places, parts);
    see(numbers, integers);
    for (int i = 0; i < types; i++) {
        MPI_Type_get_envelope(parts[i], &integers, &addresses, &types, &combiner);
        if (combiner != MPI_COMBINER_NAMED)
            MPI_Type_free(&parts[i]);
    }
}

static void sizes(MPI_Datatype type)
{
    MPI_Count bytes, lb, extent;
    MPI_Aint old;
    MPI_Type_size_x(type, &bytes);
    MPI_Type_get_extent_x(type, &lb, &extent);
    MPI_Type_get_true_extent_x(type, &lb, &extent);
    checksum += bytes + lb + extent;
    MPI_Type_extent(type, &old);
    checksum += old;
    MPI_Type_lb(type, &old);
    MPI_Type_ub(type, &old);
    checksum += old;
}

static void removed(void)
{
    int lengths[2] = {2, 1};
    MPI_Aint places[2] = {0, 16}, here;
    MPI_Datatype kinds[2] = {MPI_INT, MPI_DOUBLE}, type;
    MPI_Errhandler handler, found;
    MPI_Type_hvector(2, 1, 24, MPI_INT, &type);
    apart(type);
    MPI_Type_free(&type);
    MPI_Type_hindexed(2, lengths, places, MPI_INT, &type);
    apart(type);
    MPI_Type_free(&type);
    MPI_Type_struct(2, lengths, places, kinds, &type);
    apart(type);
    sizes(type);
    MPI_Type_free(&type);
    MPI_Address(from, &here);
    checksum += here == (MPI_Aint)from;
    MPI_Errhandler_get(MPI_COMM_WORLD, &handler);
    MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_get(MPI_COMM_WORLD, &found);
    MPI_Errhandler_set(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&found);
    MPI_Errhandler_free(&handler);
}

static void ignore(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

static void external(void)
{
    char buffer[256];
    MPI_Aint bytes, position = 0;
    MPI_Pack_external_size("external32", 10, MPI_INT, &bytes);
    checksum += bytes;
    MPI_Pack_external("external32", from, 10, MPI_INT, buffer, sizeof buffer, &position);
    MPI_Pack_external("external32", from + 10, 2, MPI_INT, buffer, sizeof buffer, &position);
    position = 0;
    MPI_Unpack_external("external32", buffer, sizeof buffer, &position, to, 12, MPI_INT);
    see(to, 12);
}

static void fortran(void)
{
    MPI_Datatype type, again;
    int bytes;
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type);
    MPI_Type_size(type, &bytes);
    MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type);
    MPI_Type_create_f90_integer(9, &type);
    MPI_Type_create_f90_integer(9, &again);
    checksum += type == again;
    MPI_Type_create_f90_real(15, MPI_UNDEFINED, &type);
    MPI_Type_size(type, &bytes);
    checksum += bytes;
    MPI_Type_create_f90_complex(6, 30, &type);
    MPI_Type_size(type, &bytes);
    checksum += bytes;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int i = 0; i < 64; i++)
        from[i] = rank * 1000 + i;
    MPI_Datatype inner, outer;
    MPI_Errhandler handler;
    MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
    MPI_Type_contiguous(3, inner, &outer);
    apart(inner);
    apart(outer);
    sizes(outer);
    MPI_Type_free(&inner);
    apart(outer);
    MPI_Type_free(&outer);
    removed();
    MPI_Errhandler_create(ignore, &handler);
    MPI_Errhandler_free(&handler);
    external();
    fortran();
    MPI_Status status;
    MPI_Count elements;
    MPI_Sendrecv(from, 4, MPI_INT, rank, 3, to, 4, MPI_INT, rank, 3, MPI_COMM_WORLD, &status);
    MPI_Get_elements_x(&status, MPI_INT, &elements);
    checksum += elements;
    finish("types_more");
    return 0;
}
