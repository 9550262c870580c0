// A list in random order, followed around and around.
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next;
    long value;
};

int main(int argc, char **argv)
{
    int n = 65536, rounds = argc > 1 ? atoi(argv[1]) : 80;
    struct node *nodes = malloc(n * sizeof *nodes);
    int *order = malloc(n * sizeof *order);
    unsigned state = 1;
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        int j = (state >> 8) % (i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int i = 0; i < n; i++) {
        nodes[order[i]].next = &nodes[order[(i + 1) % n]];
        nodes[order[i]].value = i;
    }
    long sum = 0;
    struct node *at = nodes;
    for (long step = 0; step < (long)n * rounds; step++) {
        sum += at->value;
        at = at->next;
    }
    printf("%ld\n", sum);
    return 0;
}
