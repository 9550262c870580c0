/* Requests whose handles are copied before they are waited for. A library may have one handle for several requests: then
 * only the places of handles say which is which, and where they were copied to only how far they lie from each other.
 * Rank 0 prints the tags of the requests that each call is given, 0 where there is none: all of a scene differ. */
#include "common.h"

enum { MOST = 8 };

static int next, previous, number, received[MOST];
static MPI_Request incoming[MOST];

static void say(int n, const int *tags)
{
    if (rank != 0)
        return;
    printf("wait");
    for (int i = 0; i < n; i++)
        printf(" %d", tags[i]);
    printf("\n");
}

static void wait_one(MPI_Request *request, int tag)
{
    say(1, &tag);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void wait_all(int n, MPI_Request *requests, const int *tags)
{
    MPI_Status statuses[MOST];
    say(n, tags);
    MPI_Waitall(n, requests, statuses);
}

/* Small enough to be over when it returns. */
static void give(int tag, MPI_Request *request)
{
    MPI_Isend(&number, 1, MPI_INT, next, tag, MPI_COMM_WORLD, request);
}

/* What the rank before gives in this scene, which begins. */
static void expect(int n, int tag)
{
    number = rank * 1000 + tag;
    for (int i = 0; i < n; i++)
        MPI_Irecv(&received[i], 1, MPI_INT, previous, tag + i, MPI_COMM_WORLD, &incoming[i]);
}

static void end(int n, int tag)
{
    int tags[MOST];
    for (int i = 0; i < n; i++)
        tags[i] = tag + i;
    wait_all(n, incoming, tags);
    see(received, n);
}

static void whole(void)
{
    MPI_Request older, f[3], g[3];
    expect(4, 100);
    give(100, &older);
    for (int i = 0; i < 3; i++)
        give(101 + i, &f[i]);
    for (int i = 0; i < 3; i++)
        g[i] = f[i];
    wait_all(3, g, (int[]){101, 102, 103});
    wait_one(&older, 100);
    end(4, 100);
}

static void part(void)
{
    MPI_Request older, f[4], g[3];
    expect(5, 200);
    give(200, &older);
    for (int i = 0; i < 4; i++)
        give(201 + i, &f[i]);
    wait_one(&f[0], 201);
    memcpy(g, f + 1, sizeof g);
    wait_all(3, g, (int[]){202, 203, 204});
    wait_one(&older, 200);
    end(5, 200);
}

static void gap(void)
{
    MPI_Request older, f[4], g[4];
    expect(5, 300);
    give(300, &older);
    for (int i = 0; i < 4; i++)
        give(301 + i, &f[i]);
    wait_one(&f[1], 302);
    memcpy(g, f, sizeof g);
    wait_all(4, g, (int[]){301, 0, 303, 304});
    wait_one(&older, 300);
    end(5, 300);
}

struct three { MPI_Request all[3]; };

static OWN_FRAME void wait_for(struct three given, const int *tags)
{
    wait_all(3, given.all, tags);
    number = 0;
}

static void passed(void)
{
    MPI_Request older;
    struct three f;
    expect(4, 400);
    give(400, &older);
    for (int i = 0; i < 3; i++)
        give(401 + i, &f.all[i]);
    wait_for(f, (int[]){401, 402, 403});
    wait_one(&older, 400);
    end(4, 400);
}

/* Receives and sends, of others and of nobody, and one with a handle of its own. */
static void mixed(void)
{
    int nothing = 0, much = 0;
    MPI_Request older, late, f[4], g[4];
    MPI_Status statuses[4];
    expect(2, 500);
    give(500, &older);
    MPI_Irecv(&nothing, 1, MPI_INT, MPI_PROC_NULL, 502, MPI_COMM_WORLD, &f[0]);
    give(501, &f[1]);
    MPI_Isend(&number, 1, MPI_INT, MPI_PROC_NULL, 503, MPI_COMM_WORLD, &f[2]);
    MPI_Irecv(&much, 1, MPI_INT, previous, 504, MPI_COMM_WORLD, &f[3]);
    MPI_Barrier(MPI_COMM_WORLD);
    give(504, &late);
    memcpy(g, f, sizeof g);
    say(4, (int[]){502, 501, 503, 504});
    MPI_Waitall(4, g, statuses);
    see(&statuses[3].MPI_TAG, 1);
    see(&much, 1);
    wait_one(&late, 504);
    wait_one(&older, 500);
    end(2, 500);
}

/* One after the other, until the last has no neighbour. */
static void any(void)
{
    int tags[3], at;
    MPI_Request older, f[3], g[3];
    expect(4, 600);
    give(600, &older);
    for (int i = 0; i < 3; i++)
        give(tags[i] = 601 + i, &f[i]);
    memcpy(g, f, sizeof g);
    for (int i = 0; i < 3; i++) {
        say(3, tags);
        MPI_Waitany(3, g, &at, MPI_STATUS_IGNORE);
        tags[at] = 0;
    }
    wait_one(&older, 600);
    end(4, 600);
}

/* What is over leaves room at the front, and the others move up. */
static void moved_up(void)
{
    MPI_Request older, f[4];
    expect(5, 700);
    give(700, &older);
    for (int i = 0; i < 4; i++)
        give(701 + i, &f[i]);
    wait_one(&f[0], 701);
    memmove(f, f + 1, 3 * sizeof f[0]);
    wait_all(3, f, (int[]){702, 703, 704});
    wait_one(&older, 700);
    end(5, 700);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    for (int round = 0; round < 3; round++) {
        whole();
        part();
        gap();
        passed();
        mixed();
        any();
        moved_up();
    }
    finish("copied");
}
