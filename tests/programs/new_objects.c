/* A new communicator and a new type in every step, made in the place of a random older pair, and a random pair in use.
 * argv[1]: steps (default 20); argv[2]: "turn" takes what is otherwise random in turn. */
#include "common.h"

enum { PLACES = 4, ROOM = 64 };

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 20;
    int turn = argc > 2 && strcmp(argv[2], "turn") == 0;
    MPI_Comm comms[PLACES];
    MPI_Datatype types[PLACES];
    int made[PLACES] = {0}, data[ROOM];
    for (int step = 0; step < steps; step++) {
        /* The same draw on all ranks: making a communicator takes them all. */
        int place = turn ? step % PLACES : drawn(PLACES, step, 1, 2);
        int used = turn ? step * 3 % PLACES : drawn(PLACES, step, 3, 4);
        int length = 1 + (turn ? step % 5 : drawn(5, step, 5, 6));
        if (made[place]) {
            MPI_Comm_free(&comms[place]);
            MPI_Type_free(&types[place]);
        }
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[place]);
        MPI_Type_vector(length, 2, 4, MPI_INT, &types[place]);
        MPI_Type_commit(&types[place]);
        made[place] = 1;
        if (!made[used])
            used = place;
        for (int i = 0; i < ROOM; i++)
            data[i] = rank * 100 + i;
        MPI_Bcast(data, 1, types[used], step % size, comms[used]);
        see(data, 8);
        MPI_Sendrecv_replace(data, 2, types[used], (rank + 1) % size, 4, (rank + size - 1) % size, 4, comms[used],
                             MPI_STATUS_IGNORE);
        see(data, 8);
    }
    for (int place = 0; place < PLACES; place++)
        if (made[place]) {
            MPI_Comm_free(&comms[place]);
            MPI_Type_free(&types[place]);
        }
    finish("new_objects");
}
