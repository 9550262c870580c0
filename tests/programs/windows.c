/* Windows of every kind, what can be asked of them and hung on them, and errors in them. */
#include "common.h"

static int left, right;

/* Each rank leaves a number with the rank to its right. */
static void pass_on(MPI_Win win, MPI_Aint displacement)
{
    static int number, got;
    number = 10 * rank + 3;
    MPI_Win_fence(0, win);
    MPI_Put(&number, 1, MPI_INT, right, displacement, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_INT, right, displacement, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    see(&got, 1);
}

static void ask(MPI_Win win)
{
    void *base;
    MPI_Aint *bytes;
    int *number, flag, expected[4];
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag);
    expected[0] = (int)*bytes;
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &number, &flag);
    expected[1] = *number;
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &number, &flag);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &number, &flag);
    expected[2] = *number == MPI_WIN_SEPARATE || *number == MPI_WIN_UNIFIED;
    expected[3] = flag;
    see(expected, 4);
}

static void of_memory(void)
{
    static int fixed[8];
    int *heap = malloc(16 * sizeof *heap), *own;
    MPI_Win win, other;
    MPI_Info info;
    MPI_Win_create(fixed, sizeof fixed, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    MPI_Win_create(heap, 16 * sizeof *heap, 1, info, MPI_COMM_WORLD, &other);
    MPI_Info_free(&info);
    pass_on(win, 3);
    pass_on(other, 3 * sizeof(int));
    ask(win);
    MPI_Win_free(&other);
    /* Its name is free again. */
    MPI_Win_allocate(8 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &other);
    pass_on(other, 5);
    see(own + 5, 1);
    ask(other);
    MPI_Win_free(&win);
    MPI_Win_free(&other);
    /* Nothing to offer here. */
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_free(&win);
    free(heap);
#if MPI_VERSION >= 4
    MPI_Win_create_c(fixed, sizeof fixed, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    pass_on(win, 2);
    MPI_Win_free(&win);
    MPI_Win_allocate_c(8 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
    pass_on(win, 2);
    MPI_Win_free(&win);
#endif
}

static void shared(void)
{
    MPI_Comm node;
    MPI_Win win;
    MPI_Aint bytes;
    int *mine, *theirs, unit, mates, me;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &mates);
    MPI_Comm_rank(node, &me);
    MPI_Win_allocate_shared((4 + me) * sizeof(int), sizeof(int), MPI_INFO_NULL, node, &mine, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    mine[0] = 3 * rank + 1;
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    for (int i = 0; i < mates; i++) {
        MPI_Win_shared_query(win, i, &bytes, &unit, &theirs);
        see(theirs, 1);
        see((int[]){(int)bytes, unit}, 2);
    }
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs);
    MPI_Win_unlock_all(win);
    ask(win);
    MPI_Win_free(&win);
#if MPI_VERSION >= 4
    MPI_Aint large_unit;
    MPI_Win_allocate_shared_c(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, node, &mine, &win);
    MPI_Win_shared_query_c(win, 0, &bytes, &large_unit, &theirs);
    see((int[]){(int)bytes, (int)large_unit}, 2);
    MPI_Win_free(&win);
#endif
    MPI_Comm_free(&node);
}

/* Displacements are addresses in the target's memory: each rank tells the others its own. */
static void dynamic(void)
{
    MPI_Win win;
    MPI_Aint here, *places = malloc(size * sizeof *places);
    int *block = calloc(32, sizeof *block), got = 0;
    static int fixed[4];
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, block, 32 * sizeof *block);
    MPI_Win_attach(win, fixed, sizeof fixed);
    MPI_Get_address(block, &here);
    MPI_Allgather(&here, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Put(&rank, 1, MPI_INT, right, places[right] + 8, 1, MPI_INT, win);
    MPI_Win_flush(right, win);
    MPI_Get(&got, 1, MPI_INT, right, places[right] + 8, 1, MPI_INT, win);
    MPI_Win_flush(right, win);
    MPI_Win_unlock_all(win);
    see(&got, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    ask(win);
    MPI_Win_detach(win, fixed);
    MPI_Win_detach(win, block);
    MPI_Win_free(&win);
    free(block);
    free(places);
}

/* Peers are ranks of the window's own communicator. */
static void of_a_part(void)
{
    MPI_Comm half;
    MPI_Win win;
    MPI_Group all, part;
    int *cells, me, mates, in = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &me);
    MPI_Comm_size(half, &mates);
    /* One half after the other: Open MPI 4.1 names the file behind a window after the communicator's context, which both
     * halves share. */
    if (rank % 2)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_allocate(4 * sizeof *cells, sizeof *cells, MPI_INFO_NULL, half, &cells, &win);
    for (int i = 0; i < 4; i++)
        cells[i] = 10 * rank + i;
    MPI_Win_fence(0, win);
    MPI_Get(&in, 1, MPI_INT, (me + 1) % mates, 1, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    see(&in, 1);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Win_get_group(win, &part);
    MPI_Group_translate_ranks(part, 1, (int[]){0}, all, &in);
    see(&in, 1);
    MPI_Group_free(&all);
    MPI_Group_free(&part);
    MPI_Win_free(&win);
    if (rank % 2 == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&half);
}

static void attributes(void)
{
    static int value = 11;
    int key, second, flag, *found, length;
    char name[MPI_MAX_OBJECT_NAME], text[64];
    MPI_Win win;
    MPI_Info info, used;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, "a window");
    MPI_Win_get_name(win, name, &length);
    see(&length, 1);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL);
    MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &second, &value);
    MPI_Win_get_attr(win, key, &found, &flag);
    see(&flag, 1);
    MPI_Win_set_attr(win, key, &value);
    MPI_Win_get_attr(win, key, &found, &flag);
    see(found, 1);
    MPI_Win_delete_attr(win, key);
    MPI_Win_free_keyval(&key);
    MPI_Win_free_keyval(&second);
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ordering", "none");
    MPI_Win_set_info(win, info);
    MPI_Win_get_info(win, &used);
    MPI_Info_get(used, "accumulate_ordering", 63, text, &flag);
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

static int complaints;

static void complain(MPI_Win *win, int *code, ...)
{
    (void)win;
    (void)code;
    complaints++;
}

static void errors(void)
{
    MPI_Win win;
    MPI_Errhandler own, before, again;
    int *cells, code, class, bad;
    MPI_Win_allocate(4 * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &win);
    MPI_Win_get_errhandler(win, &before);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    code = MPI_Put(cells, 1, MPI_INT, size + 3, 0, 1, MPI_INT, win);
    MPI_Error_class(code, &class);
    bad = class == MPI_ERR_RANK;
    see(&bad, 1);
    code = MPI_Get(cells, -1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Error_class(code, &class);
    bad = class == MPI_ERR_COUNT;
    see(&bad, 1);
    MPI_Win_fence(0, win);
    MPI_Win_create_errhandler(complain, &own);
    MPI_Win_set_errhandler(win, own);
    MPI_Win_get_errhandler(win, &again);
    MPI_Errhandler_free(&again);
    MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    see(&complaints, 1);
    MPI_Win_set_errhandler(win, before);
    MPI_Errhandler_free(&own);
    MPI_Errhandler_free(&before);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    of_memory();
    shared();
    dynamic();
    of_a_part();
    attributes();
    errors();
    finish("windows");
}
