/* Stores of 4 bytes into three arrays of 1000, of which only some are to be recorded. It prints where the arrays are. C and C++.

   usage: regions          marks: array 0 before any mark, array 1 five times while it is off, array 2 five times while it is on
          regions steps    array 0, 1 and 2, one after the other; before each but the first it leaves a file `ready.N` and waits
                           for `go.N` */
#include "../../../include/refrain.h"

#include <stdio.h>
#include <unistd.h>

static volatile int arrays[3][1000];

static void __attribute__((noinline)) fill(int n) {
    for (int i = 0; i < 1000; i++) arrays[n][i] = i;
}

static void wait_for(int n) {
    char name[16];
    snprintf(name, sizeof name, "ready.%d", n);
    fclose(fopen(name, "w"));
    snprintf(name, sizeof name, "go.%d", n);
    while (access(name, F_OK) != 0) usleep(10000);
}

int main(int argc, char **argv) {
    (void)argv;
    for (int n = 0; n < 3; n++) printf("%#lx\n", (unsigned long)arrays[n]);
    fflush(stdout);
    if (argc > 1) {
        for (int n = 0; n < 3; n++) {
            if (n > 0) wait_for(n);
            fill(n);
        }
        return 0;
    }
    fill(0);
    for (int i = 0; i < 5; i++) {
        refrain_memory_off();
        fill(1);
        refrain_memory_on();
        fill(2);
    }
    return 0;
}
