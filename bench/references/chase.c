/* Follows pointers through a shuffled ring. usage: chase [LENGTH [STEPS]] */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1 << 18, steps = argc > 2 ? atol(argv[2]) : 4000000;
    long *order = malloc(n * sizeof *order), *next = malloc(n * sizeof *next);
    unsigned long seed = 7;
    for (long i = 0; i < n; i++) order[i] = i;
    for (long i = n - 1; i > 0; i--) {
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        long j = (seed >> 33) % (i + 1), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    for (long i = 0; i < n; i++) next[order[i]] = order[(i + 1) % n];
    long at = 0;
    for (long i = 0; i < steps; i++) at = next[at];
    printf("%ld\n", at);
    return 0;
}
