/* FLASH's mesh, as PARAMESH keeps it: blocks of equal size in the order of a Morton curve, of which each rank has an equal share.
 * Here 4 to 8 blocks a rank, of which some are cut into 8. Guard cells are filled by one message from each rank that has a block
 * beside one of ours. When blocks have been cut or joined, the curve is shared out anew and blocks move. */
#ifndef FLASH_H
#define FLASH_H

#include "papers.h"

enum { FACE = 64, BLOCK = 4096 };

/* A sweep of the piecewise parabolic method takes about 1000 operations a cell. Blocks are 8^3 cells. */
enum { CELLS = 512, A_CELL = 1000 };

struct mesh {
    /* Bits of each coordinate; whether the mesh goes around its ends; whether blocks are ever cut, and how often they were. */
    int bits[3], periodic, adaptive, epoch;
    /* How many leaves come before each block, and all of them. */
    int *before, blocks;
};

static inline void coordinates(const struct mesh *mesh, int block, int *at)
{
    at[0] = at[1] = at[2] = 0;
    for (int bit = 0, next = 0; next < mesh->bits[0]; next++)
        for (int axis = 0; axis < 3; axis++)
            if (next < mesh->bits[axis])
                at[axis] |= (block >> bit++ & 1) << next;
}

static inline int block_at(const struct mesh *mesh, const int *at)
{
    int block = 0;
    for (int bit = 0, next = 0; next < mesh->bits[0]; next++)
        for (int axis = 0; axis < 3; axis++)
            if (next < mesh->bits[axis])
                block |= (at[axis] >> next & 1) << bit++;
    return block;
}

/* A front that moves along the first axis, with dents. */
static inline int is_refined(const struct mesh *mesh, int block)
{
    int at[3];
    if (!mesh->adaptive)
        return 0;
    coordinates(mesh, block, at);
    return at[0] == (mesh->epoch + (int)(mixed(at[1], at[2], mesh->epoch) % 2)) % (1 << mesh->bits[0]);
}

/* The mesh as it is in this epoch. */
static inline void refine(struct mesh *mesh, int epoch)
{
    mesh->epoch = epoch;
    mesh->before[0] = 0;
    for (int block = 0; block < mesh->blocks; block++)
        mesh->before[block + 1] = mesh->before[block] + (is_refined(mesh, block) ? 8 : 1);
}

static inline struct mesh new_mesh(int periodic, int adaptive)
{
    struct mesh mesh = {.periodic = periodic, .adaptive = adaptive};
    int bits = 2;
    while (1 << (bits - 2) < size)
        bits++;
    for (int axis = 0; axis < 3; axis++)
        mesh.bits[axis] = (bits + 2 - axis) / 3;
    mesh.blocks = 1 << bits;
    mesh.before = malloc(sizeof(int) * (mesh.blocks + 1));
    refine(&mesh, 0);
    return mesh;
}

static inline int owner(const struct mesh *mesh, int leaf)
{
    return (int)((int64_t)leaf * size / mesh->before[mesh->blocks]);
}

static inline int first_leaf(const struct mesh *mesh, int of)
{
    return (int)(((int64_t)of * mesh->before[mesh->blocks] + size - 1) / size);
}

static inline int block_of(const struct mesh *mesh, int leaf)
{
    int low = 0, high = mesh->blocks;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (mesh->before[middle] <= leaf)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The ranks beside this one in order, and how many faces each shares with it. */
static int peers, peer[MOST_REQUESTS], faces[MOST_REQUESTS];

static inline void add_face(int other)
{
    int at = peers;
    if (other == rank)
        return;
    while (at > 0 && peer[at - 1] >= other)
        at--;
    if (at == peers || peer[at] != other) {
        for (int i = peers++; i > at; i--) {
            peer[i] = peer[i - 1];
            faces[i] = faces[i - 1];
        }
        peer[at] = other;
        faces[at] = 0;
    }
    faces[at]++;
}

/* The leaves on the other side of one face of a leaf. */
static inline void across(const struct mesh *mesh, int leaf, int axis, int up)
{
    int block = block_of(mesh, leaf), child = leaf - mesh->before[block], at[3];
    int is_cut = mesh->before[block + 1] - mesh->before[block] == 8;
    if (is_cut && (child >> axis & 1) != up) {
        add_face(owner(mesh, mesh->before[block] + (child ^ 1 << axis)));
        return;
    }
    coordinates(mesh, block, at);
    int extent = 1 << mesh->bits[axis], to = at[axis] + (up ? 1 : -1);
    if (!mesh->periodic && (to < 0 || to >= extent))
        return;
    at[axis] = (to + extent) % extent;
    int next = block_at(mesh, at), first = mesh->before[next];
    if (mesh->before[next + 1] - first == 1)
        add_face(owner(mesh, first));
    else if (is_cut)
        add_face(owner(mesh, first + (child ^ 1 << axis)));
    else
        for (int part = 0; part < 8; part++)
            if ((part >> axis & 1) != up)
                add_face(owner(mesh, first + part));
}

static inline void find_peers(const struct mesh *mesh)
{
    peers = 0;
    for (int leaf = first_leaf(mesh, rank); leaf < first_leaf(mesh, rank + 1); leaf++)
        for (int side = 0; side < 6; side++)
            across(mesh, leaf, side / 2, side % 2);
}

static inline void fill_guards(void)
{
    for (int i = 0; i < peers; i++)
        start_receive(FACE * faces[i], peer[i], 1);
    for (int i = 0; i < peers; i++)
        start_send(FACE * faces[i], peer[i], 1);
    wait_all();
}

/* What a rank computes with its blocks in one sweep. */
static inline void sweep_blocks(const struct mesh *mesh)
{
    compute((double)CELLS * (first_leaf(mesh, rank + 1) - first_leaf(mesh, rank)), A_CELL);
}

static inline void smallest_step(void)
{
    MPI_Allreduce(out, in, 2, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

#endif
