/* Ways to end, after stores that are known: 1000 of 4 bytes, one after the other, into an array whose address is printed first.

   Its exit code is 5, so that it is known from others; 0 with `well`, because a launcher ends all ranks when one has another.

   usage: ends exit|well|segv|abort|fork|exec|forever|random */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stores[1000];

static volatile int anywhere[1 << 20];

/* Two million stores that do not fold: nothing about their addresses repeats. */
static void __attribute__((noinline)) scatter(void) {
    unsigned long state = 1;
    for (int i = 0; i < 2000000; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        anywhere[state >> 44] = i;
    }
}

static void __attribute__((noinline)) fill(void) {
    for (int i = 0; i < 1000; i++) stores[i] = i;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "exit";
    printf("%#lx\n", (unsigned long)stores);
    fflush(stdout);
    if (strcmp(how, "forever") == 0) {
        /* Until it is killed, or long after a test has given up. */
        for (int i = 0; i < 1000000; i++) {
            fill();
            if (i == 100) fclose(fopen("filled", "w"));
        }
    }
    if (strcmp(how, "fork") == 0) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            fill();
            _exit(3);
        }
        waitpid(child, &status, 0);
        if (system("exit 4") != 4 << 8) return 1;
        return WEXITSTATUS(status);
    }
    fill();
    if (strcmp(how, "random") == 0) {
        /* What was recorded is saved now and then, with the next stores: who looks on says when that was. */
        fclose(fopen("filled", "w"));
        for (int i = 0; i < 6000 && access("saved", F_OK); i++) usleep(100 * 1000);
        scatter();
    }
    if (strcmp(how, "segv") == 0) *(volatile int *)8 = 1;
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "exec") == 0) execl("/bin/sh", "sh", "-c", "exit 6", (char *)0);
    return strcmp(how, "well") ? 5 : 0;
}
