/* FLASH StirTurb: stirred turbulence in a periodic box, on a mesh that is never refined. Each step sums the stirring force, fills
 * guard cells for each of three sweeps, and agrees on the next time step. Pilgrim figures 6 to 8. Ranks: any. argv[1]: steps. */
#include "flash.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    struct mesh mesh = new_mesh(1, 0);
    find_peers(&mesh);
    broadcast(30);
    for (int step = 0; step < steps; step++) {
        sum_all(4);
        for (int sweep = 0; sweep < 3; sweep++) {
            fill_guards();
            sweep_blocks(&mesh);
        }
        smallest_step();
    }
    free(mesh.before);
    finish();
}
