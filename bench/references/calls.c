/* References many calls deep: a tree of numbers is searched by a function that calls itself, again and again, from some calls in.
 * usage: calls [SEARCHES] */
#include <stdio.h>
#include <stdlib.h>

typedef struct Node {
    long key;
    struct Node *less, *more;
} Node;

static Node *put(Node *at, long key) {
    if (!at) {
        at = calloc(1, sizeof *at);
        at->key = key;
    } else if (key < at->key) {
        at->less = put(at->less, key);
    } else if (key > at->key) {
        at->more = put(at->more, key);
    }
    return at;
}

static int has(const Node *at, long key) {
    if (!at || at->key == key) return at != NULL;
    return has(key < at->key ? at->less : at->more, key);
}

int main(int argc, char **argv) {
    long searches = argc > 1 ? atol(argv[1]) : 1000000, found = 0;
    unsigned long state = 1;
    Node *root = NULL;
    for (int i = 0; i < 20000; i++) root = put(root, (long)((state = state * 6364136223846793005UL + 1) >> 40));
    for (long i = 0; i < searches; i++) found += has(root, (long)((state = state * 6364136223846793005UL + 1) >> 40));
    printf("%ld found\n", found);
    return 0;
}
