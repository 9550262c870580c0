/* A file that was there before: its size, the end of it, parts of it by offset, pointer, view and request. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1000, PART = 300 };

static void count(MPI_Status *status, int least, const char *what)
{
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes < least) {
        fprintf(stderr, "%s: %d bytes of %d\n", what, bytes, least);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    static char buffer[BYTES];
    int rank, bytes;
    MPI_File file;
    MPI_Offset size;
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype every_other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        FILE *made = fopen("input.dat", "w");
        if (made == NULL || fwrite(buffer, 1, BYTES, made) != BYTES || fclose(made) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);

    /* Read to its end. */
    MPI_File_open(MPI_COMM_WORLD, "input.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    do {
        MPI_File_read(file, buffer, PART, MPI_BYTE, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
    } while (bytes == PART);
    MPI_File_get_size(file, &size);
    if (bytes != BYTES % PART || size != BYTES)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_close(&file);

    /* In parts. */
    MPI_File_open(MPI_COMM_WORLD, "./input.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_read_at(file, 100 * rank, buffer, 50, MPI_INT, &status);
    count(&status, 200, "at an offset");
    MPI_File_iread_at(file, 400, buffer, 100, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    count(&status, 100, "with a request");
    MPI_Type_vector(50, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    MPI_File_set_view(file, 4, MPI_INT, every_other, "native", MPI_INFO_NULL);
    MPI_File_read_all(file, buffer, 100, MPI_INT, &status);
    count(&status, 400, "every other one");
    MPI_File_read_at_all(file, 20, buffer, 10, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&every_other);

    /* One that was there and is read and written. */
    MPI_File_open(MPI_COMM_SELF, rank == 0 ? "input.dat" : "./input.dat", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, BYTES - 8, buffer, 8, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 500, MPI_SEEK_SET);
    MPI_File_read(file, buffer, 500, MPI_BYTE, &status);
    count(&status, 500, "after a seek");
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
