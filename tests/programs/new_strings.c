/* A string that no call had before in every step, and some that many had: names of files, values of info objects, names
 * of communicators. argv[1]: steps (default 20). */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 20;
    MPI_Info info;
    MPI_Info_create(&info);
    for (int step = 0; step < steps; step++) {
        char text[MPI_MAX_OBJECT_NAME], back[MPI_MAX_OBJECT_NAME];
        int length, found;
        snprintf(text, sizeof text, "/scratch/rank%d/checkpoint.%05d", rank, step);
        MPI_Info_set(info, "filename", text);
        MPI_Info_get(info, "filename", (int)sizeof back - 1, back, &found);
        if (!found || strcmp(text, back) != 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
        /* Nothing like the one before, now and then nothing at all. */
        snprintf(text, sizeof text, "%x%0*d", drawn(1 << 20, step, rank, 7), 1 + step % 40, step * step % 977);
        MPI_Info_set(info, "token", text);
        snprintf(text, sizeof text, "%s", step % 11 == 0 ? "" : step % 3 ? "even field" : "odd field");
        MPI_Comm_set_name(MPI_COMM_WORLD, text);
        MPI_Comm_get_name(MPI_COMM_WORLD, back, &length);
        see(&length, 1);
    }
    MPI_Info_free(&info);
    finish("new_strings");
}
