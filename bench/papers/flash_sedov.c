/* FLASH Sedov: a blast wave. As Pilgrim ran it: without refinement. Each step fills guard cells for each of three sweeps and agrees
 * on the next time step; rank 0 writes which block asked for it, and gets that from the rank which has this block: another one
 * every so many steps. Pilgrim figures 6 to 8. Ranks: any. argv[1]: steps. */
#include "flash.h"

enum { SAME_SOURCE = 20 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    struct mesh mesh = new_mesh(0, 0);
    find_peers(&mesh);
    broadcast(30);
    for (int step = 0; step < steps; step++) {
        for (int sweep = 0; sweep < 3; sweep++) {
            fill_guards();
            sweep_blocks(&mesh);
        }
        smallest_step();
        int source = (int)(mixed(step / SAME_SOURCE, 0, 7) % size);
        if (rank == source && source != 0)
            send(4, 0, 9);
        if (rank == 0 && source != 0)
            receive(4, source, 9);
    }
    free(mesh.before);
    finish();
}
