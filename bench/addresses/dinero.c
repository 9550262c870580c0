/* A cache simulator the plain way: a din trace read with getc, sets of lines in order of use, one reference after the other.
 * Caches for fetches and for data of 32K, 8 ways, lines of 64 bytes, and 1M, 16 ways behind them; LRU, write back, writes bring
 * lines in. `dinero TRACE` prints nanoseconds of processor time for each reference, best of three, and the misses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct line {
    unsigned long tag;
    int valid, dirty;
};

struct cache {
    int sets, ways;
    struct line *lines;
    struct cache *below;
    unsigned long misses;
};

static struct cache *make(int size, int ways, struct cache *below)
{
    struct cache *cache = calloc(1, sizeof *cache);
    cache->sets = size / 64 / ways;
    cache->ways = ways;
    cache->lines = calloc(cache->sets * ways, sizeof *cache->lines);
    cache->below = below;
    return cache;
}

/* `whole`: a line that is written back needs nothing from below. */
static void touch(struct cache *cache, unsigned long line, int write, int whole)
{
    struct line *set = cache->lines + line % cache->sets * cache->ways;
    int at = 0;
    while (at < cache->ways && !(set[at].valid && set[at].tag == line))
        at++;
    if (at == cache->ways) {
        cache->misses += !whole;
        struct line old = set[--at];
        if (cache->below && !whole)
            touch(cache->below, line, 0, 0);
        memmove(set + 1, set, at * sizeof *set);
        set[0] = (struct line){line, 1, write};
        if (cache->below && old.valid && old.dirty)
            touch(cache->below, old.tag, 1, 1);
        return;
    }
    struct line found = set[at];
    found.dirty |= write;
    memmove(set + 1, set, at * sizeof *set);
    set[0] = found;
}

static int number(FILE *file, unsigned long *value)
{
    int c = getc(file), digits = 0;
    while (c == ' ' || c == '\n')
        c = getc(file);
    for (*value = 0;; c = getc(file), digits++) {
        if (c >= '0' && c <= '9')
            *value = *value << 4 | (c - '0');
        else if (c >= 'a' && c <= 'f')
            *value = *value << 4 | (c - 'a' + 10);
        else
            return digits > 0;
    }
}

int main(int argc, char **argv)
{
    double least = 1e30;
    struct cache *l2 = 0, *instructions = 0, *data = 0;
    for (int round = 0; argc > 1 && round < 3; round++) {
        FILE *file = fopen(argv[1], "r");
        unsigned long kind, address, count = 0;
        if (!file)
            return 2;
        l2 = make(1 << 20, 16, 0);
        instructions = make(32 << 10, 8, l2);
        data = make(32 << 10, 8, l2);
        clock_t begin = clock();
        while (number(file, &kind) && number(file, &address)) {
            if (kind < 3)
                touch(kind == 2 ? instructions : data, address >> 6, kind == 1, 0);
            count++;
        }
        double each = 1e9 * (clock() - begin) / CLOCKS_PER_SEC / (count ? count : 1);
        if (each < least)
            least = each;
        fclose(file);
    }
    if (!l2)
        return 2;
    printf("%.2f %lu %lu %lu\n", least, instructions->misses, data->misses, l2->misses);
    return 0;
}
