/* The same calls from several places, which each rank comes to in another order. argv[1]: where rank 0 begins (default
 * 0); argv[2]: turns (default 5). */
#include "common.h"

static int turns; /* What each place does besides: no two of them are the same code. */

OWN_FRAME static void exchange(int tag)
{
    int own = rank + tag, other = 0;
    MPI_Allreduce(&own, &other, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    see(&other, 1);
    turns++;
}

OWN_FRAME static void first(int tag)
{
    exchange(tag);
    turns++;
}

OWN_FRAME static void second(int tag)
{
    exchange(tag);
    turns += 2;
}

OWN_FRAME static void third(int tag)
{
    exchange(tag);
    turns += 3;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int begin = argc > 1 ? atoi(argv[1]) : 0, most = argc > 2 ? atoi(argv[2]) : 5;
    void (*const ways[])(int) = {first, second, third};
    for (int i = 0; i < most; i++)
        ways[(begin + rank + i) % 3](i);
    finish("sites_order");
}
