/* Ranks on a grid that does not wrap around, the first coordinate fastest, and the neighbours there. */
#ifndef GRID_H
#define GRID_H

#include "common.h"

struct grid {
    int dimensions, extent[3], at[3];
};

static inline struct grid grid_of(int dimensions)
{
    struct grid grid = {dimensions, {0, 0, 0}, {0, 0, 0}};
    int left = rank;
    MPI_Dims_create(size, dimensions, grid.extent);
    for (int d = 0; d < dimensions; d++) {
        grid.at[d] = left % grid.extent[d];
        left /= grid.extent[d];
    }
    return grid;
}

/* MPI_PROC_NULL outside the grid. */
static inline int rank_at(const struct grid *grid, const int *at)
{
    int found = 0;
    for (int d = grid->dimensions - 1; d >= 0; d--) {
        if (at[d] < 0 || at[d] >= grid->extent[d])
            return MPI_PROC_NULL;
        found = found * grid->extent[d] + at[d];
    }
    return found;
}

/* There and back are the numbers of the direction and of the opposite one; it differs in so many axes: 1 across a
 * face, 2 across an edge, 3 across a corner. */
struct neighbour {
    int rank, there, back, axes;
};

/* All that touch this rank, diagonally too, at most 26; how many. */
static inline int touching(const struct grid *grid, struct neighbour *found)
{
    int directions = 1, n = 0;
    for (int d = 0; d < grid->dimensions; d++)
        directions *= 3;
    for (int there = 0; there < directions; there++) {
        int at[3], axes = 0, left = there;
        for (int d = 0; d < grid->dimensions; d++) {
            at[d] = grid->at[d] + left % 3 - 1;
            axes += left % 3 != 1;
            left /= 3;
        }
        int other = rank_at(grid, at);
        if (axes > 0 && other != MPI_PROC_NULL)
            found[n++] = (struct neighbour){other, there, directions - 1 - there, axes};
    }
    return n;
}

#endif
