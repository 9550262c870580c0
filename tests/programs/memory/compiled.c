/* Loads and stores that are known by construction, of code that compilers make: every access is volatile, so that it happens
   as it is written. After them the program prints what each thread must have done, in order: L, S or U (an atomic update), the
   address and the size; then where its stacks are (T) and what of it cannot be written (R), with the size.

   A thread has an area of its own. Recording goes from `begin` to `finish`.

   usage: compiled [threads [plain]]; `plain` leaves out memcpy and memset. With -DUSE_MPI every rank does the same, and prints
   to a file of its own, `said.RANK`. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef USE_MPI
#include <mpi.h>
#endif

#define AREA 8192
#define MOST 16
#define NOINLINE __attribute__((noinline))

static char areas[MOST][AREA] __attribute__((aligned(64)));
static char *stacks[MOST];
static size_t stack_sizes[MOST];
static volatile int mark;
static int is_plain;

/* A function that refers to nothing does not tell that it is entered. */
NOINLINE void begin(void) { mark = 1; }
NOINLINE void finish(void) { mark = 2; }

struct __attribute__((packed)) unaligned {
    char first;
    volatile uint16_t two;
    volatile uint32_t four;
    volatile uint64_t eight;
};

static NOINLINE void scalars(char *a) {
    for (int i = 0; i < 20; i++) {
        uint64_t x = *(volatile uint64_t *)(a + 8 * i);
        uint32_t y = *(volatile uint32_t *)(a + 200 + 4 * i);
        *(volatile uint16_t *)(a + 300 + 2 * i) = (uint16_t)y;
        if (i % 3) *(volatile uint8_t *)(a + 600 + i) = (uint8_t)x;
    }
    for (int i = 0; i < 3; i++) *(volatile int *)(a + 64) += 1;
}

static NOINLINE void unaligned(char *a) {
    struct unaligned *u = (struct unaligned *)(a + 1000);
    for (int i = 0; i < 4; i++) {
        u->four = u->two;
        u->eight = u->four;
    }
}

static NOINLINE void atomics(char *a) {
    uint8_t *one = (uint8_t *)a + 1200;
    uint16_t *two = (uint16_t *)(a + 1202);
    uint32_t *four = (uint32_t *)(a + 1204);
    uint64_t *eight = (uint64_t *)(a + 1208);
    uint32_t expected = 77;
    for (int i = 0; i < 5; i++) {
        __atomic_fetch_add(four, 3, __ATOMIC_RELAXED);
        __atomic_exchange_n(eight, 5 + __atomic_load_n(four, __ATOMIC_ACQUIRE), __ATOMIC_SEQ_CST);
        __atomic_fetch_sub(two, 1, __ATOMIC_ACQ_REL);
        __atomic_fetch_or(one, 1 << i, __ATOMIC_RELAXED);
        __atomic_store_n(one, 2, __ATOMIC_SEQ_CST);
        __atomic_store_n(two, 3, __ATOMIC_RELEASE);
    }
    if (__atomic_compare_exchange_n(four, &expected, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) abort();
    if (expected != 15 || !__atomic_compare_exchange_n(four, &expected, 1, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) abort();
    if (*(volatile uint64_t *)eight != 20 || *(volatile uint32_t *)four != 1) abort();
}

static volatile size_t long_one = 135, short_one = 7;

static NOINLINE void strings(char *a) {
    memcpy(a + 2000, a + 3000, long_one);
    memmove(a + 2001, a + 2000, short_one);
    memset(a + 4000, 1, long_one);
    memset(a + 4000, 2, short_one - short_one);
}

static NOINLINE int deep(volatile int *at, int depth) {
    *at = depth;
    return depth == 0 ? *at : deep(at + 1, depth - 1) + *at;
}

static NOINLINE void jumps(jmp_buf *to, volatile int *at, int depth) {
    *at = depth;
    if (depth == 0) longjmp(*to, 1);
    jumps(to, at + 1, depth - 1);
    *at = -1;
}

static NOINLINE void calls(char *a) {
    jmp_buf here;
    deep((volatile int *)(a + 5000), 5);
    if (setjmp(here) == 0) jumps(&here, (volatile int *)(a + 5100), 4);
    *(volatile int *)(a + 5200) = 1;
}

static const char *who = "";
static int thread_of_area;

static void print(char what, const char *at, size_t size) { printf("%s%d %c %#lx %zu\n", who, thread_of_area, what, (unsigned long)at, size); }

static void print_copy(const char *to, const char *from, size_t length) {
    for (size_t at = 0, size = 64; at < length; at += size) {
        while (length - at < size) size /= 2;
        if (from) print('L', from + at, size);
        print('S', to + at, size);
    }
}

static void expected(char *a) {
    for (int i = 0; i < 20; i++) {
        print('L', a + 8 * i, 8), print('L', a + 200 + 4 * i, 4), print('S', a + 300 + 2 * i, 2);
        if (i % 3) print('S', a + 600 + i, 1);
    }
    for (int i = 0; i < 3; i++) print('L', a + 64, 4), print('S', a + 64, 4);
    for (int i = 0; i < 4; i++) {
        print('L', a + 1001, 2), print('S', a + 1003, 4);
        print('L', a + 1003, 4), print('S', a + 1007, 8);
    }
    for (int i = 0; i < 5; i++) {
        print('U', a + 1204, 4);
        print('L', a + 1204, 4), print('U', a + 1208, 8);
        print('U', a + 1202, 2), print('U', a + 1200, 1), print('S', a + 1200, 1), print('S', a + 1202, 2);
    }
    print('U', a + 1204, 4), print('U', a + 1204, 4);
    print('L', a + 1208, 8), print('L', a + 1204, 4);
    if (!is_plain) {
        print_copy(a + 2000, a + 3000, 135);
        print_copy(a + 2001, a + 2000, 7);
        print_copy(a + 4000, 0, 135);
    }
    for (int i = 0; i <= 5; i++) print('S', a + 5000 + 4 * i, 4);
    for (int i = 5; i >= 0; i--) print('L', a + 5000 + 4 * i, 4);
    for (int i = 0; i <= 4; i++) print('S', a + 5100 + 4 * i, 4);
    print('S', a + 5200, 4);
}

static pthread_barrier_t done, gone;

static void run(char *area) {
    scalars(area);
    unaligned(area);
    atomics(area);
    if (!is_plain) strings(area);
    calls(area);
}

/* A thread ends after `finish`: what is done at its end is none of the program's. */
static void *thread(void *area) {
    run(area);
    pthread_barrier_wait(&done);
    pthread_barrier_wait(&gone);
    return 0;
}

static void note_stack(int thread, pthread_t which) {
    pthread_attr_t attributes;
    void *start;
    pthread_getattr_np(which, &attributes);
    pthread_attr_getstack(&attributes, &start, &stack_sizes[thread]);
    pthread_attr_destroy(&attributes);
    stacks[thread] = start;
}

extern char __executable_start[], data_start[];

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t others[MOST];
    is_plain = argc > 2;
    if (threads < 1 || threads > MOST) return 2;
#ifdef USE_MPI
    int rank;
    static char prefix[16];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(prefix, sizeof prefix, "said.%d", rank);
    if (!freopen(prefix, "w", stdout)) return 3;
    snprintf(prefix, sizeof prefix, "%d.", rank);
    who = prefix;
#endif
    note_stack(0, pthread_self());
    pthread_barrier_init(&done, 0, threads);
    pthread_barrier_init(&gone, 0, threads);
    begin();
    for (int i = 1; i < threads; i++) {
        pthread_create(&others[i], 0, thread, areas[i]);
        note_stack(i, others[i]);
    }
    run(areas[0]);
    pthread_barrier_wait(&done);
    finish();
    pthread_barrier_wait(&gone);
    for (int i = 1; i < threads; i++) pthread_join(others[i], 0);
    for (int i = 0; i < threads; i++) {
        thread_of_area = i;
        expected(areas[i]);
        print('T', stacks[i], stack_sizes[i]);
        print('R', __executable_start, (size_t)(data_start - __executable_start));
    }
    fflush(stdout);
#ifdef USE_MPI
    MPI_Finalize();
#endif
    return 0;
}
