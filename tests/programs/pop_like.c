/* As an ocean model: 400 settings are broadcast at as many places in the program, through a function for each type;
 * then every step solves a system in as many iterations as the data need, and takes some branches only now and then.
 * The grid wraps around in one direction, and ranks that are all land exchange nothing. argv[1]: steps (default 10). */
#include "grid.h"

enum { SETTINGS = 400, N = 12 };

static int integers[SETTINGS], logicals[SETTINGS], broadcasts;
static double reals[SETTINGS];
static char names[SETTINGS][16];

OWN_FRAME static void broadcast_integer(int *value)
{
    MPI_Bcast(value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    broadcasts++;
}

OWN_FRAME static void broadcast_logical(int *value)
{
    int word = *value != 0;
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    *value = word;
    broadcasts++;
}

OWN_FRAME static void broadcast_real(double *value)
{
    MPI_Bcast(value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    broadcasts++;
}

OWN_FRAME static void broadcast_name(char *value)
{
    MPI_Bcast(value, sizeof names[0], MPI_CHAR, 0, MPI_COMM_WORLD);
    broadcasts++;
}

/* Each mention is a call of its own, for a setting of its own. */
#define INTEGER broadcast_integer(&integers[__COUNTER__]);
#define LOGICAL broadcast_logical(&logicals[__COUNTER__]);
#define REAL broadcast_real(&reals[__COUNTER__]);
#define NAME broadcast_name(names[__COUNTER__]);
#define TEN INTEGER REAL INTEGER LOGICAL INTEGER REAL NAME INTEGER REAL LOGICAL

OWN_FRAME static void read_domain(void)
{
    TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
    see(&broadcasts, 1);
}

OWN_FRAME static void read_grid(void)
{
    TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
    see(&broadcasts, 1);
}

OWN_FRAME static void read_forcing(void)
{
    TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
    see(&broadcasts, 1);
}

OWN_FRAME static void read_mixing(void)
{
    TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
    see(&broadcasts, 1);
}

_Static_assert(__COUNTER__ == SETTINGS, "a call for each setting");

static struct neighbour near[4];
static int neighbours, out[N], in[4][N];

static int is_land(int other)
{
    return other > 0 && drawn(5, other, 0, 11) == 0;
}

static void find_neighbours(void)
{
    struct grid grid = grid_of(2);
    for (int side = 0; side < 4; side++) {
        int at[2] = {grid.at[0], grid.at[1]}, axis = side / 2;
        at[axis] += side % 2 ? 1 : -1;
        at[0] = (at[0] + grid.extent[0]) % grid.extent[0];
        int other = rank_at(&grid, at);
        if (other != MPI_PROC_NULL && other != rank && !is_land(rank) && !is_land(other))
            near[neighbours++] = (struct neighbour){other, side, side ^ 1, 1};
    }
}

OWN_FRAME static void halo(int value)
{
    MPI_Request requests[8];
    for (int i = 0; i < N; i++)
        out[i] = value + i;
    for (int n = 0; n < neighbours; n++)
        MPI_Irecv(in[n], N, MPI_INT, near[n].rank, near[n].back, MPI_COMM_WORLD, &requests[n]);
    for (int n = 0; n < neighbours; n++)
        MPI_Isend(out, N, MPI_INT, near[n].rank, near[n].there, MPI_COMM_WORLD, &requests[neighbours + n]);
    MPI_Waitall(2 * neighbours, requests, MPI_STATUSES_IGNORE);
    for (int n = 0; n < neighbours; n++)
        see(in[n], N);
}

/* How many iterations it took: until no rank's residual is above the limit. */
OWN_FRAME static int solve(int step)
{
    int residual = 20 + drawn(20 << drawn(6, step, 0, 8), step, rank, 7), worst, trips = 0;
    do {
        halo(residual);
        residual /= 2;
        MPI_Allreduce(&residual, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        trips++;
    } while (worst > 10);
    return trips;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    for (int i = 0; i < SETTINGS && rank == 0; i++) {
        integers[i] = i * 3;
        logicals[i] = i % 2;
        reals[i] = i * 0.5;
        snprintf(names[i], sizeof names[i], "setting %d", i);
    }
    read_domain();
    read_grid();
    read_forcing();
    read_mixing();
    see(integers, SETTINGS);
    see(logicals, SETTINGS);
    find_neighbours();
    for (int step = 0; step < steps; step++) { /* time step */
        int mine = checksum % 97, sum = 0;
        if (step % 5 == 0)
            broadcast_real(&reals[1]);
        halo(mine + step);
        halo(mine * 2 + step);
        int trips = solve(step);
        see(&trips, 1);
        if (step % 7 == 3) {
            MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
            see(&sum, 1);
        }
        if (drawn(4, step, 0, 12) == 0)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    finish("pop_like");
}
