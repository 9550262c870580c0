/* A list whose elements lie in the memory of all ranks, in a dynamic window. Where the next one is, a rank finds in the window
 * itself: no message says it. */
#include <stddef.h>

#include "common.h"

#define ELEMENTS 6

typedef struct {
    MPI_Aint place;
    int rank, value;
} Link;

static MPI_Win win;
static Link *own[ELEMENTS + 1];
static int made;

/* An element of this rank that others can see; its address. */
static MPI_Aint new_element(int value)
{
    MPI_Aint place;
    Link *one = malloc(sizeof *one);
    one->place = 0;
    one->rank = -1;
    one->value = value;
    MPI_Win_attach(win, one, sizeof *one);
    MPI_Get_address(one, &place);
    own[made++] = one;
    return place;
}

/* Behind the last element that this rank knows of; whoever comes first is it. */
static void append(Link *tail, MPI_Aint place)
{
    Link next;
    int none = -1, found, me = rank;
    for (;;) {
        MPI_Compare_and_swap(&me, &none, &found, MPI_INT, tail->rank, tail->place + (MPI_Aint)offsetof(Link, rank), win);
        MPI_Win_flush(tail->rank, win);
        if (found == -1) {
            MPI_Accumulate(&place, 1, MPI_AINT, tail->rank, tail->place, 1, MPI_AINT, MPI_REPLACE, win);
            MPI_Win_flush(tail->rank, win);
            tail->rank = rank;
            tail->place = place;
            return;
        }
        do {
            MPI_Fetch_and_op(NULL, &next.place, MPI_AINT, tail->rank, tail->place, MPI_NO_OP, win);
            MPI_Win_flush(tail->rank, win);
        } while (next.place == 0);
        tail->rank = found;
        tail->place = next.place;
    }
}

int main(int argc, char **argv)
{
    Link tail = {0, 0, 0}, at;
    int sum = 0, count = 0;
    start(&argc, &argv);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 0)
        tail.place = new_element(0);
    MPI_Bcast(&tail.place, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    MPI_Aint first = tail.place;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < ELEMENTS; i++)
        append(&tail, new_element(100 * rank + i));
    MPI_Barrier(MPI_COMM_WORLD);
    /* Each rank goes through all of it. */
    at.rank = 0;
    at.place = first;
    while (at.rank >= 0) {
        Link here;
        MPI_Get(&here, sizeof here, MPI_BYTE, at.rank, at.place, sizeof here, MPI_BYTE, win);
        MPI_Win_flush(at.rank, win);
        sum += here.value;
        count++;
        at = here;
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    see((int[]){sum, count}, 2);
    for (int i = 0; i < made; i++) {
        MPI_Win_detach(win, own[i]);
        free(own[i]);
    }
    MPI_Win_free(&win);
    finish("linked_list");
    return 0;
}
