/* What a rank prints goes to a file of its own, PRINTS/RANK. Launchers drop lines of ranks that end with an error, and break
 * lines of several ranks into each other. Children of the rank keep the stdout that the rank gives them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void take_stdout(void)
{
    const char *folder = getenv("PRINTS"), *rank = getenv("PMI_RANK");
    if (!rank)
        rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!folder || !rank)
        return;
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, rank) >= sizeof path)
        return;
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file >= 0 && dup2(file, STDOUT_FILENO) >= 0)
        unsetenv("PRINTS");
    if (file >= 0)
        close(file);
}
