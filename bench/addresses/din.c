/* Reads a din trace the plain way, as simulators in C do, and does nothing with it: `din TRACE` prints nanoseconds of
 * processor time for each reference, best of five. */
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv)
{
    double least = 1e30;
    volatile unsigned long sum = 0;
    for (int round = 0; argc > 1 && round < 5; round++) {
        FILE *file = fopen(argv[1], "r");
        unsigned kind;
        unsigned long address, count = 0;
        if (!file)
            return 2;
        clock_t begin = clock();
        while (fscanf(file, "%x %lx", &kind, &address) == 2) {
            sum += address + kind;
            count++;
        }
        double each = 1e9 * (clock() - begin) / CLOCKS_PER_SEC / (count ? count : 1);
        if (each < least)
            least = each;
        fclose(file);
    }
    printf("%.2f\n", least);
    return 0;
}
