/* One-sided communication: every way of moving data, in every kind of epoch. */
#include "common.h"

enum { CELLS = 32 };

/* This rank's part of the window: cell 0 is a counter, the others are written to by one rank at a time. */
static int *cells;
static MPI_Win win;
static int left, right;

static void clear(void)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    for (int i = 0; i < CELLS; i++)
        cells[i] = 100 * rank + i;
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What the others wrote is read under a lock, which makes it visible here. */
static void look(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    see(cells, CELLS);
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void fences(void)
{
    int out[8], in[8] = {0}, one = 1;
    MPI_Datatype stripes;
    MPI_Type_vector(4, 1, 2, MPI_INT, &stripes);
    MPI_Type_commit(&stripes);
    for (int i = 0; i < 8; i++)
        out[i] = 1000 * rank + i;
    clear();
    MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE, win);
    for (int round = 0; round < 3; round++) {
        MPI_Put(out, 4, MPI_INT, right, 4 + 4 * round, 4, MPI_INT, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Put(out, 4, MPI_INT, MPI_PROC_NULL, 0, 4, MPI_INT, win);
        MPI_Win_fence(0, win);
        MPI_Get(in, 4, MPI_INT, left, 4 + 4 * round, 4, MPI_INT, win);
        MPI_Win_fence(MPI_MODE_NOPUT, win);
        see(in, 4);
    }
    /* A different shape at either end. */
    MPI_Put(out, 4, MPI_INT, right, 16, 1, stripes, win);
    MPI_Accumulate(out, 1, stripes, left, 24, 4, MPI_INT, MPI_BXOR, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Type_free(&stripes);
    look();
}

/* Each rank opens its memory to the left and reaches into the right. */
static void post_and_start(void)
{
    int value = rank + 7, flag = 0, all = 0;
    MPI_Group group, from, to;
    MPI_Win_get_group(win, &group);
    MPI_Group_incl(group, 1, &left, &from);
    MPI_Group_incl(group, 1, &right, &to);
    clear();
    for (int round = 0; round < 4; round++) {
        MPI_Win_post(from, round % 2 ? MPI_MODE_NOSTORE : 0, win);
        MPI_Win_start(to, 0, win);
        MPI_Put(&value, 1, MPI_INT, right, 1 + round, 1, MPI_INT, win);
        MPI_Win_complete(win);
        if (round < 2)
            MPI_Win_wait(win);
        else
            for (flag = 0; !flag;)
                MPI_Win_test(win, &flag);
        see(cells + 1 + round, 1);
        value += 10;
    }
    /* MPICH 4.0 takes a post for the epoch after next, from a rank that is ahead, for the one it waits for. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_post(group, 0, win);
    MPI_Win_start(group, 0, win);
    for (int i = 0; i < size; i++)
        MPI_Accumulate(&rank, 1, MPI_INT, i, 8, 1, MPI_INT, MPI_MAX, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    all = cells[8] >= size - 1;
    see(&all, 1);
    MPI_Group_free(&from);
    MPI_Group_free(&to);
    MPI_Group_free(&group);
    look();
}

static void locks(void)
{
    int value = 5 * rank + 1, in = 0, one = 1;
    clear();
    for (int i = 0; i < size; i++) {
        int target = (rank + i) % size;
        MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Put(&value, 1, MPI_INT, target, 1 + rank, 1, MPI_INT, win);
        MPI_Win_flush_local(target, win);
        value += 3;
        MPI_Win_flush(target, win);
        MPI_Get(&in, 1, MPI_INT, target, 1 + rank, 1, MPI_INT, win);
        MPI_Win_unlock(target, win);
        see(&in, 1);
    }
    MPI_Win_lock_all(0, win);
    MPI_Accumulate(&one, 1, MPI_INT, right, 0, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_flush_local_all(win);
    MPI_Accumulate(&one, 1, MPI_INT, left, 0, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_flush_all(win);
    MPI_Win_sync(win);
    MPI_Win_unlock_all(win);
    look();
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Put(&value, 1, MPI_INT, right, 20, 1, MPI_INT, win);
    MPI_Win_unlock_all(win);
    look();
}

static void atomics(void)
{
    int one = 1, nothing = 0, before = 0, sum = 0, expected, taken, in[4] = {0}, out[4];
    for (int i = 0; i < 4; i++)
        out[i] = 10 * rank + i;
    clear();
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 5; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Fetch_and_op(NULL, &sum, MPI_INT, 0, 0, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    see(&sum, 1);
    /* One rank finds the cell as it was. */
    taken = rank + 1000;
    expected = 100 * right + 3;
    MPI_Compare_and_swap(&taken, &expected, &before, MPI_INT, right, 3, win);
    MPI_Win_flush(right, win);
    see(&before, 1);
    MPI_Compare_and_swap(&nothing, &expected, &before, MPI_INT, right, 3, win);
    MPI_Win_flush(right, win);
    see(&before, 1);
    MPI_Get_accumulate(out, 4, MPI_INT, in, 4, MPI_INT, right, 8, 4, MPI_INT, MPI_REPLACE, win);
    MPI_Win_flush(right, win);
    see(in, 4);
    MPI_Get_accumulate(NULL, 0, MPI_INT, in, 4, MPI_INT, right, 8, 4, MPI_INT, MPI_NO_OP, win);
    MPI_Win_flush(right, win);
    see(in, 4);
    MPI_Win_unlock_all(win);
    look();
}

static void requests(void)
{
    int out[12], in[12] = {0};
    MPI_Request request[4];
    MPI_Status status;
    for (int i = 0; i < 12; i++)
        out[i] = 50 * rank + i;
    clear();
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < 2; round++) {
        MPI_Rput(out, 2, MPI_INT, right, 2, 2, MPI_INT, win, &request[0]);
        MPI_Wait(&request[0], round ? &status : MPI_STATUS_IGNORE);
        MPI_Win_flush(right, win);
        MPI_Rget(in, 2, MPI_INT, right, 2, 2, MPI_INT, win, &request[0]);
        MPI_Wait(&request[0], MPI_STATUS_IGNORE);
        see(in, 2);
        MPI_Raccumulate(out, 2, MPI_INT, right, 6, 2, MPI_INT, MPI_SUM, win, &request[0]);
        MPI_Rget_accumulate(out + 4, 2, MPI_INT, in + 4, 2, MPI_INT, right, 10, 2, MPI_INT, MPI_SUM, win, &request[1]);
        MPI_Rput(out + 8, 1, MPI_INT, right, 14, 1, MPI_INT, win, &request[2]);
        MPI_Rget(in + 8, 1, MPI_INT, right, 20, 1, MPI_INT, win, &request[3]);
        MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
        MPI_Win_flush(right, win);
        see(in + 4, 5);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Rput(out, 2, MPI_INT, MPI_PROC_NULL, 2, 2, MPI_INT, win, &request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    look();
}

#if MPI_VERSION >= 4
static void large_counts(void)
{
    int out[8], in[8] = {0};
    MPI_Request request[4];
    for (int i = 0; i < 8; i++)
        out[i] = 70 * rank + i;
    clear();
    MPI_Win_lock_all(0, win);
    MPI_Put_c(out, 2, MPI_INT, right, 2, 2, MPI_INT, win);
    MPI_Win_flush(right, win);
    MPI_Get_c(in, 2, MPI_INT, right, 2, 2, MPI_INT, win);
    MPI_Win_flush(right, win);
    MPI_Accumulate_c(out, 2, MPI_INT, right, 4, 2, MPI_INT, MPI_SUM, win);
    MPI_Get_accumulate_c(out, 2, MPI_INT, in + 2, 2, MPI_INT, right, 8, 2, MPI_INT, MPI_SUM, win);
    MPI_Win_flush(right, win);
    see(in, 4);
    MPI_Rput_c(out, 2, MPI_INT, right, 12, 2, MPI_INT, win, &request[0]);
    MPI_Rget_c(in, 2, MPI_INT, right, 16, 2, MPI_INT, win, &request[1]);
    MPI_Raccumulate_c(out, 2, MPI_INT, right, 20, 2, MPI_INT, MPI_SUM, win, &request[2]);
    MPI_Rget_accumulate_c(out, 2, MPI_INT, in + 4, 2, MPI_INT, right, 24, 2, MPI_INT, MPI_MIN, win, &request[3]);
    MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
    see(in, 6);
    MPI_Win_unlock_all(win);
    look();
}
#else
static void large_counts(void) {}
#endif

int main(int argc, char **argv)
{
    start(&argc, &argv);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    MPI_Win_allocate(CELLS * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win);
    fences();
    post_and_start();
    locks();
    atomics();
    requests();
    large_counts();
    MPI_Win_free(&win);
    finish("rma");
}
