/* No MPI at the start; a plugin brings it. What the linker and dlerror say on the way is printed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void ask(const char *when)
{
    const char *names[] = {"MPI_Init", "PMPI_Init", "MPI_Isend_c", "malloc"};
    for (int i = 0; i < 4; i++) {
        dlerror();
        void *found = dlsym(RTLD_DEFAULT, names[i]);
        printf("%s %s %s, %s\n", when, names[i], found ? "yes" : "no", dlerror() ? "an error" : "no error");
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    ask("at the start");
    dlerror();
    if (!dlopen("/nowhere/libnothing.so", RTLD_NOW))
        printf("%s\n", dlerror());
    if (!dlopen("libm.so.6", RTLD_LAZY) || dlerror())
        return 3;
    ask("after others");
    /* Found beside the program, by the program's own path. */
    void *plugin = dlopen(argv[1], (!strcmp(argv[2], "now") ? RTLD_NOW : RTLD_LAZY) | RTLD_LOCAL);
    const char *error = dlerror();
    if (!plugin || error) {
        printf("%s\n", error);
        return 4;
    }
    int (*run)(void) = (int (*)(void))dlsym(plugin, "plugin");
    printf("%d\n", run ? run() : -1);
    return 0;
}
