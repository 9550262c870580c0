/* Infos of communicators, mapping onto topologies, MPI_Pcontrol. */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    MPI_Info info, used;
    MPI_Comm comm;
    int keys, dims[1] = {size}, periods[1] = {1}, place;
    MPI_Info_create(&info);
    MPI_Info_set(info, "refrain_hint", "true");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_info(comm, info);
    MPI_Comm_get_info(comm, &used);
    MPI_Info_get_nkeys(used, &keys);
    MPI_Info_free(&used);
    MPI_Info_free(&info);

    MPI_Cart_map(comm, 1, dims, periods, &place);
    see(&place, 1);
    dims[0] = 1;
    MPI_Cart_map(comm, 1, dims, periods, &place);
    see(&place, 1);
    int *ends = malloc((size_t)size * sizeof *ends), *edges = malloc((size_t)size * sizeof *edges);
    for (int i = 0; i < size; i++) {
        ends[i] = i + 1;
        edges[i] = (i + 1) % size;
    }
    MPI_Graph_map(comm, size, ends, edges, &place);
    see(&place, 1);
    free(ends);
    free(edges);
    MPI_Comm_free(&comm);

    MPI_Pcontrol(0);
    MPI_Pcontrol(1, "text", 2.5, &place);
    MPI_Pcontrol(2);
    finish("odds");
    return 0;
}
