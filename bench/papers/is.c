/* NPB IS: integers sorted by buckets. Each step sums the bucket sizes, tells each rank how many keys it will get, and sends them:
 * how many go from one rank to another depends on the keys. Between steps each rank changes two keys. At the end each rank tells
 * the next its largest key. Pilgrim section 4.2, ScalaTrace figure 10. Ranks: any. argv[1]: steps. */
#include "papers.h"

enum { KEYS = 4096, BUCKETS = 1024 };

/* The keys that a rank has for another, in a step: those drawn at first; then in each step the smallest key and the largest
 * one take the places of two others. */
static int keys(int from, int to, int step)
{
    int mean = KEYS / size > 8 ? KEYS / size : 8, spread = 1;
    while (spread * spread < mean)
        spread++;
    int count = mean - spread + (int)(mixed(from, to, 1) % (2 * spread + 1));
    for (int changed = 1; changed <= step && size > 1; changed++) {
        count += (to == 0) + (to == size - 1);
        count -= (int)(mixed(from, changed, 2) % size) == to;
        count -= (int)(mixed(from, changed, 3) % size) == to;
    }
    return count > 0 ? count : 0;
}

static void place(int *counts, int *at)
{
    for (int other = 0, next = 0; other < size; next += counts[other++])
        at[other] = next;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int *sent = malloc(sizeof(int) * size), *sent_at = malloc(sizeof(int) * size);
    int *received = malloc(sizeof(int) * size), *received_at = malloc(sizeof(int) * size);
    for (int step = 0; step < steps; step++) {
        for (int other = 0; other < size; other++) {
            sent[other] = keys(rank, other, step);
            received[other] = keys(other, rank, step);
        }
        place(sent, sent_at);
        place(received, received_at);
        sum_all(BUCKETS);
        MPI_Alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        MPI_Alltoallv(out, sent, sent_at, MPI_DOUBLE, in, received, received_at, MPI_DOUBLE, MPI_COMM_WORLD);
    }
    if (rank > 0)
        start_receive(1, rank - 1, 1);
    if (rank < size - 1)
        send(1, rank + 1, 1);
    wait_each();
    sum_at_root(1);
    free(received_at);
    free(received);
    free(sent_at);
    free(sent);
    finish();
}
