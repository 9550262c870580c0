/* FLASH Cellular: a detonation front with cells, on an adaptive mesh. Each step fills guard cells and agrees on the next time step.
 * Every second step blocks at the front are cut and those behind it joined, the Morton curve is shared out anew, blocks move to
 * their new ranks, and everybody has other neighbours. Pilgrim figures 6 to 8. Ranks: any. argv[1]: steps. */
#include "flash.h"

enum { REFINED_EVERY = 2 };

/* Where the data of a leaf of the new mesh were. */
static int old_owner(const struct mesh *old, int block, int child)
{
    int was_cut = old->before[block + 1] - old->before[block] == 8;
    return owner(old, old->before[block] + (was_cut ? child : 0));
}

static void move_blocks(const struct mesh *old, const struct mesh *new)
{
    int first = first_leaf(new, rank), last = first_leaf(new, rank + 1);
    for (int leaf = first; leaf < last; leaf++) {
        int block = block_of(new, leaf), from = old_owner(old, block, leaf - new->before[block]);
        if (from != rank)
            start_receive(BLOCK, from, leaf - first);
    }
    int begin = block_of(old, first_leaf(old, rank)), end = block_of(old, first_leaf(old, rank + 1) - 1);
    for (int block = begin; block <= end; block++)
        for (int leaf = new->before[block]; leaf < new->before[block + 1]; leaf++) {
            int to = owner(new, leaf);
            if (to != rank && old_owner(old, block, leaf - new->before[block]) == rank)
                start_send(BLOCK, to, leaf - first_leaf(new, to));
        }
    wait_all();
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    struct mesh mesh = new_mesh(0, 1), next = new_mesh(0, 1);
    find_peers(&mesh);
    broadcast(30);
    for (int step = 0; step < steps; step++) {
        for (int sweep = 0; sweep < 3; sweep++) {
            fill_guards();
            sweep_blocks(&mesh);
        }
        smallest_step();
        if (step % REFINED_EVERY != REFINED_EVERY - 1)
            continue;
        struct mesh old = mesh;
        refine(&next, (step + 1) / REFINED_EVERY);
        sum_all(1);
        MPI_Allgather(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        move_blocks(&old, &next);
        mesh = next;
        next = old;
        MPI_Alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        find_peers(&mesh);
    }
    free(next.before);
    free(mesh.before);
    finish();
}
