/* Every way of reading and writing a file, by plain and by large counts. The file lies in the working directory. */
#include "common.h"

enum { N = 6 };

static const char *const NAME = "io.dat";
static int out[N], in[N];
static MPI_File fh;

/* New data, as soon as all have read the old. */
static void fill(int salt)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) {
        out[i] = 1000 * salt + 100 * rank + i;
        in[i] = -1;
    }
}

/* What was written by all is read by all. */
static void settle(void)
{
    MPI_File_sync(fh);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(fh);
}

/* Says what was read, and how much of it. */
static void got(MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    see(&count, 1);
    see(in, N);
}

static void wait_for(MPI_Request *request)
{
    MPI_Status status;
    int count;
    MPI_Wait(request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    see(&count, 1);
}

/* The shared pointer is passed on from rank to rank, so that all know where they are. */
#define IN_TURN(action)                                                                                             \
    for (int turn = 0; turn < size; turn++) {                                                                       \
        if (turn == rank) {                                                                                         \
            action                                                                                                  \
        }                                                                                                           \
        MPI_Barrier(MPI_COMM_WORLD);                                                                                \
    }

#define TRANSFERS(c)                                                                                                \
    static void at_offsets##c(void)                                                                                 \
    {                                                                                                               \
        MPI_Status status;                                                                                          \
        MPI_Request request;                                                                                        \
        MPI_Offset mine = (MPI_Offset)rank * N * (MPI_Offset)sizeof(int), next;                                     \
        next = (MPI_Offset)((rank + 1) % size) * N * (MPI_Offset)sizeof(int);                                       \
        fill(1);                                                                                                    \
        MPI_File_write_at##c(fh, mine, out, N, MPI_INT, &status);                                                   \
        settle();                                                                                                   \
        MPI_File_read_at##c(fh, next, in, N, MPI_INT, &status);                                                     \
        got(&status);                                                                                               \
        MPI_File_read_at_all##c(fh, next, in, N - 1, MPI_INT, &status);                                             \
        got(&status);                                                                                               \
        fill(2);                                                                                                    \
        MPI_File_write_at_all##c(fh, mine, out, N, MPI_INT, MPI_STATUS_IGNORE);                                     \
        settle();                                                                                                   \
        MPI_File_iread_at##c(fh, next, in, N, MPI_INT, &request);                                                   \
        wait_for(&request);                                                                                         \
        see(in, N);                                                                                                 \
        fill(3);                                                                                                    \
        MPI_File_iwrite_at##c(fh, mine, out, N, MPI_INT, &request);                                                 \
        wait_for(&request);                                                                                         \
        settle();                                                                                                   \
        MPI_File_iread_at_all##c(fh, next, in, N, MPI_INT, &request);                                               \
        wait_for(&request);                                                                                         \
        see(in, N);                                                                                                 \
        fill(4);                                                                                                    \
        MPI_File_iwrite_at_all##c(fh, mine, out, N, MPI_INT, &request);                                             \
        wait_for(&request);                                                                                         \
        settle();                                                                                                   \
        MPI_File_read_at_all_begin##c(fh, next, in, N, MPI_INT);                                                    \
        MPI_File_read_at_all_end(fh, in, &status);                                                                  \
        got(&status);                                                                                               \
        fill(5);                                                                                                    \
        MPI_File_write_at_all_begin##c(fh, mine, out, N, MPI_INT);                                                  \
        MPI_File_write_at_all_end(fh, out, MPI_STATUS_IGNORE);                                                      \
        settle();                                                                                                   \
        /* Behind the end there is nothing. */                                                                      \
        MPI_File_read_at##c(fh, 1 << 20, in, N, MPI_INT, &status);                                                  \
        got(&status);                                                                                               \
    }                                                                                                               \
                                                                                                                    \
    static void at_own_pointers##c(void)                                                                            \
    {                                                                                                               \
        MPI_Status status;                                                                                          \
        MPI_Request request;                                                                                        \
        MPI_Offset mine = (MPI_Offset)rank * N * (MPI_Offset)sizeof(int);                                           \
        fill(6);                                                                                                    \
        MPI_File_seek(fh, mine, MPI_SEEK_SET);                                                                      \
        MPI_File_write##c(fh, out, N / 2, MPI_INT, &status);                                                        \
        MPI_File_write_all##c(fh, out + N / 2, N - N / 2, MPI_INT, &status);                                        \
        settle();                                                                                                   \
        MPI_File_seek(fh, -(MPI_Offset)sizeof out, MPI_SEEK_CUR);                                                   \
        MPI_File_read##c(fh, in, N / 2, MPI_INT, &status);                                                          \
        MPI_File_read_all##c(fh, in + N / 2, N - N / 2, MPI_INT, &status);                                          \
        got(&status);                                                                                               \
        fill(7);                                                                                                    \
        MPI_File_seek(fh, mine, MPI_SEEK_SET);                                                                      \
        MPI_File_iwrite##c(fh, out, N / 2, MPI_INT, &request);                                                      \
        wait_for(&request);                                                                                         \
        MPI_File_iwrite_all##c(fh, out + N / 2, N - N / 2, MPI_INT, &request);                                      \
        wait_for(&request);                                                                                         \
        settle();                                                                                                   \
        MPI_File_seek(fh, mine, MPI_SEEK_SET);                                                                      \
        MPI_File_iread##c(fh, in, N / 2, MPI_INT, &request);                                                        \
        wait_for(&request);                                                                                         \
        MPI_File_iread_all##c(fh, in + N / 2, N - N / 2, MPI_INT, &request);                                        \
        wait_for(&request);                                                                                         \
        see(in, N);                                                                                                 \
        fill(8);                                                                                                    \
        MPI_File_seek(fh, mine, MPI_SEEK_SET);                                                                      \
        MPI_File_write_all_begin##c(fh, out, N, MPI_INT);                                                           \
        MPI_File_write_all_end(fh, out, &status);                                                                   \
        settle();                                                                                                   \
        MPI_File_seek(fh, mine, MPI_SEEK_SET);                                                                      \
        MPI_File_read_all_begin##c(fh, in, N, MPI_INT);                                                             \
        MPI_File_read_all_end(fh, in, &status);                                                                     \
        got(&status);                                                                                               \
    }                                                                                                               \
                                                                                                                    \
    static void at_the_shared_pointer##c(void)                                                                      \
    {                                                                                                               \
        MPI_Status status;                                                                                          \
        MPI_Request request;                                                                                        \
        fill(9);                                                                                                    \
        MPI_File_seek_shared(fh, 0, MPI_SEEK_SET);                                                                  \
        IN_TURN(MPI_File_write_shared##c(fh, out, N, MPI_INT, &status);)                                            \
        settle();                                                                                                   \
        MPI_File_seek_shared(fh, 0, MPI_SEEK_SET);                                                                  \
        IN_TURN(MPI_File_read_shared##c(fh, in, N, MPI_INT, &status);)                                              \
        got(&status);                                                                                               \
        fill(10);                                                                                                   \
        MPI_File_seek_shared(fh, 0, MPI_SEEK_SET);                                                                  \
        IN_TURN(MPI_File_iwrite_shared##c(fh, out, N, MPI_INT, &request); wait_for(&request);)                      \
        settle();                                                                                                   \
        MPI_File_seek_shared(fh, 0, MPI_SEEK_SET);                                                                  \
        IN_TURN(MPI_File_iread_shared##c(fh, in, N, MPI_INT, &request); wait_for(&request);)                        \
        see(in, N);                                                                                                 \
        fill(11);                                                                                                   \
        MPI_File_seek_shared(fh, 0, MPI_SEEK_SET);                                                                  \
        MPI_File_write_ordered##c(fh, out, N, MPI_INT, &status);                                                    \
        settle();                                                                                                   \
        MPI_File_seek_shared(fh, 0, MPI_SEEK_SET);                                                                  \
        MPI_File_read_ordered##c(fh, in, N, MPI_INT, &status);                                                      \
        got(&status);                                                                                               \
        fill(12);                                                                                                   \
        MPI_File_seek_shared(fh, 0, MPI_SEEK_SET);                                                                  \
        MPI_File_write_ordered_begin##c(fh, out, N, MPI_INT);                                                       \
        MPI_File_write_ordered_end(fh, out, &status);                                                               \
        settle();                                                                                                   \
        MPI_File_seek_shared(fh, 0, MPI_SEEK_SET);                                                                  \
        MPI_File_read_ordered_begin##c(fh, in, N, MPI_INT);                                                         \
        MPI_File_read_ordered_end(fh, in, &status);                                                                 \
        got(&status);                                                                                               \
    }                                                                                                               \
                                                                                                                    \
    static void transfers##c(void)                                                                                  \
    {                                                                                                               \
        MPI_File_open(MPI_COMM_WORLD, NAME, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh);                   \
        MPI_File_set_size(fh, 0);                                                                                   \
        at_offsets##c();                                                                                            \
        at_own_pointers##c();                                                                                       \
        at_the_shared_pointer##c();                                                                                 \
        MPI_File_close(&fh);                                                                                        \
        MPI_Barrier(MPI_COMM_WORLD);                                                                                \
        if (rank == 0)                                                                                              \
            MPI_File_delete(NAME, MPI_INFO_NULL);                                                                   \
        MPI_Barrier(MPI_COMM_WORLD);                                                                                \
    }

TRANSFERS()
#if MPI_VERSION >= 4
TRANSFERS(_c)
#endif

/* Many blocks in a loop, in pieces that are not next to each other in memory. */
static void blocks(void)
{
    MPI_Datatype odd;
    MPI_Status status;
    static int cells[16];
    MPI_Type_vector(4, 1, 2, MPI_INT, &odd);
    MPI_Type_commit(&odd);
    MPI_File_open(MPI_COMM_WORLD, NAME, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &fh);
    for (int step = 0; step < 8; step++) {
        MPI_Offset place = (MPI_Offset)(step * size + rank) * 4 * (MPI_Offset)sizeof(int);
        for (int i = 0; i < 16; i++)
            cells[i] = 100 * step + i + rank;
        MPI_File_write_at_all(fh, place, cells, 1, odd, &status);
        settle();
        MPI_File_read_at(fh, place, cells, 4, MPI_INT, &status);
        see(cells, 4);
    }
    MPI_File_close(&fh);
    MPI_Type_free(&odd);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    transfers();
#if MPI_VERSION >= 4
    transfers_c();
#endif
    blocks();
    finish("io");
}
