/* Each rank writes 64 KiB of one file, and reads what it wrote. */
#include "common.h"

#define BYTES 65536

int main(int argc, char **argv)
{
    start(&argc, &argv);
    static int block[BYTES / sizeof(int)];
    MPI_File file;
    MPI_Offset place = (MPI_Offset)rank * BYTES;
    for (size_t i = 0; i < BYTES / sizeof(int); i++)
        block[i] = rank + (int)i;
    MPI_File_open(MPI_COMM_WORLD, "one_file.dat", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    MPI_File_write_at(file, place, block, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    memset(block, 0, BYTES);
    MPI_File_read_at(file, place, block, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    see(block, BYTES / sizeof(int));
    MPI_File_close(&file);
    finish("one_file");
    return 0;
}
