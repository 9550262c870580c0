/* Loads and stores that are known by construction: the kernels are assembly, and after them the program prints what each
   must have done, in order: L, S or U (an atomic update), the address and the size.

   A thread has an area of its own. Its stack lies in it too while a kernel runs, so calls, returns, pushes and pops are known
   as well. Recording goes from `begin` to `finish`.

   usage: known [threads]; with -DUSE_MPI every rank does the same, and says it in a file known.RANK. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef USE_MPI
#include <mpi.h>
#endif

#define AREA 8192
#define STACK 4096 /* its end, from where the area begins; below 2048 is data */
#define MOST 16

static char areas[MOST][AREA] __attribute__((aligned(64)));

void begin(void);
void finish(void);
void kernels(char *area, char *stack);

/* kernels(rdi: data, rsi: stack). All that it does between the marks is listed in `expected`. */
__asm__(
    ".text\n"
    ".globl begin\n.type begin,@function\nbegin: ret\n.size begin,.-begin\n"
    ".globl finish\n.type finish,@function\nfinish: ret\n.size finish,.-finish\n"
    ".globl kernels\n.type kernels,@function\n"
    "kernels:\n"
    "  push %rbx\n  push %rbp\n  mov %rsp, %rbp\n  mov %rsi, %rsp\n  mov %rdi, %rbx\n"
    /* scalar, of all sizes, unaligned too */
    "  xor %ecx, %ecx\n"
    "1:\n"
    "  mov (%rbx,%rcx,8), %rax\n"
    "  mov 1(%rbx,%rcx,4), %edx\n"
    "  mov %dx, 515(%rbx,%rcx,2)\n"
    "  mov %al, 600(%rbx,%rcx)\n"
    "  inc %ecx\n  cmp $20, %ecx\n  jne 1b\n"
    /* read and write, not atomic */
    "  addl $1, 64(%rbx)\n"
    "  incq 72(%rbx)\n"
    "  negb 80(%rbx)\n"
    "  mov $3, %ecx\n"
    "6:  addl $1, 64(%rbx)\n  dec %ecx\n  jne 6b\n"
    /* vectors */
    "  movups 129(%rbx), %xmm0\n"
    "  movaps %xmm0, 160(%rbx)\n"
    "  movsd 200(%rbx), %xmm1\n"
    "  movss %xmm1, 212(%rbx)\n"
    "  addps 256(%rbx), %xmm0\n"
    "  movhps 264(%rbx), %xmm0\n"
    "  cvtss2sd 268(%rbx), %xmm1\n"
    "  mov $4, %ecx\n"
    "2:  movaps 160(%rbx), %xmm2\n  dec %ecx\n  jne 2b\n"
#ifndef NO_AVX
    "  vmovups 321(%rbx), %ymm0\n"
    "  vmovaps %ymm0, 352(%rbx)\n"
    "  vaddpd 384(%rbx), %ymm0, %ymm0\n"
    "  vbroadcastss 420(%rbx), %ymm1\n"
    /* element by element: gathered by all and by one, and stored by one */
    "  movabs $0x0000000700000003, %rax\n  vmovq %rax, %xmm2\n  vpunpcklqdq %xmm2, %xmm2, %xmm2\n"
    "  vpcmpeqd %ymm3, %ymm3, %ymm3\n  vgatherdpd %ymm3, 1200(%rbx,%xmm2,8), %ymm4\n"
    "  movabs $0x8000000000000000, %rax\n  vmovq %rax, %xmm3\n  vmovaps %ymm3, %ymm5\n"
    "  vgatherdpd %ymm3, 1300(%rbx,%xmm2,8), %ymm4\n"
    "  vmaskmovpd %ymm4, %ymm5, 1400(%rbx)\n"
    "  vzeroupper\n"
#endif
    /* x87 */
    "  fldt 450(%rbx)\n  fstpt 470(%rbx)\n  fildl 484(%rbx)\n  fstpl 488(%rbx)\n"
    /* atomic */
    "  lock addl $1, 64(%rbx)\n"
    "  mov $5, %eax\n  xchg %rax, 72(%rbx)\n"
    "  lock xaddw %dx, 82(%rbx)\n"
    "  xor %eax, %eax\n  lock cmpxchgl %edx, 88(%rbx)\n"
    "  push %rbx\n  mov %rbx, %r8\n  xor %eax, %eax\n  xor %edx, %edx\n  xor %ebx, %ebx\n  xor %ecx, %ecx\n"
    "  lock cmpxchg16b 96(%r8)\n  pop %rbx\n"
    "  mov $3, %ecx\n"
    "3:  lock incq 72(%rbx)\n  dec %ecx\n  jne 3b\n"
    /* strings */
    "  lea 700(%rbx), %rsi\n  lea 801(%rbx), %rdi\n  mov $5, %ecx\n  rep movsb\n"
    "  lea 1000(%rbx), %rdi\n  mov $3, %ecx\n  rep stosq\n"
    "  lea 700(%rbx), %rsi\n  lea 801(%rbx), %rdi\n  mov $4, %ecx\n  repe cmpsb\n"
    "  xor %ecx, %ecx\n  rep movsb\n"
    "  lea 720(%rbx), %rsi\n  lodsl\n"
    "  mov $1, %al\n  lea 740(%rbx), %rdi\n  scasb\n"
    "  std\n  lea 1100(%rbx), %rdi\n  mov $2, %ecx\n  rep stosl\n  cld\n"
    /* the stack, and several references of one instruction */
    "  push 16(%rbx)\n"
    "  pop 24(%rbx)\n"
    "  call 4f\n"
    "  lea 5f(%rip), %rax\n  mov %rax, 32(%rbx)\n"
    "  call *32(%rbx)\n"
    "  mov %rbp, %rsp\n  pop %rbp\n  pop %rbx\n  ret\n"
    "4:  push %rax\n  pop %rax\n  ret\n"
    "5:  ret $0\n"
    ".size kernels,.-kernels\n");

static const char *who = "";
static int thread_of_area;

static void print(char what, const char *at, int size) { printf("%s%d %c %#lx %d\n", who, thread_of_area, what, (unsigned long)at, size); }

/* What `kernels` does within the area, from the first to the last. */
static void expected(char *a) {
    char *s = a + STACK;
    for (int i = 0; i < 20; i++) {
        print('L', a + 8 * i, 8);
        print('L', a + 1 + 4 * i, 4);
        print('S', a + 515 + 2 * i, 2);
        print('S', a + 600 + i, 1);
    }
    print('L', a + 64, 4), print('S', a + 64, 4);
    print('L', a + 72, 8), print('S', a + 72, 8);
    print('L', a + 80, 1), print('S', a + 80, 1);
    for (int i = 0; i < 3; i++) print('L', a + 64, 4), print('S', a + 64, 4);
    print('L', a + 129, 16), print('S', a + 160, 16);
    print('L', a + 200, 8), print('S', a + 212, 4);
    print('L', a + 256, 16), print('L', a + 264, 8), print('L', a + 268, 4);
    for (int i = 0; i < 4; i++) print('L', a + 160, 16);
#ifndef NO_AVX
    print('L', a + 321, 32), print('S', a + 352, 32), print('L', a + 384, 32), print('L', a + 420, 4);
    for (int i = 0; i < 4; i++) print('L', a + 1200 + 8 * (i % 2 ? 7 : 3), 8);
    print('L', a + 1300 + 8 * 3, 8), print('S', a + 1400, 8);
#endif
    print('L', a + 450, 10), print('S', a + 470, 10), print('L', a + 484, 4), print('S', a + 488, 8);
    print('U', a + 64, 4), print('U', a + 72, 8), print('U', a + 82, 2), print('U', a + 88, 4);
    print('S', s - 8, 8), print('U', a + 96, 16), print('L', s - 8, 8);
    for (int i = 0; i < 3; i++) print('U', a + 72, 8);
    for (int i = 0; i < 5; i++) print('L', a + 700 + i, 1), print('S', a + 801 + i, 1);
    for (int i = 0; i < 3; i++) print('S', a + 1000 + 8 * i, 8);
    for (int i = 0; i < 4; i++) print('L', a + 801 + i, 1), print('L', a + 700 + i, 1);
    print('L', a + 720, 4), print('L', a + 740, 1);
    for (int i = 0; i < 2; i++) print('S', a + 1100 - 4 * i, 4);
    print('L', a + 16, 8), print('S', s - 8, 8), print('L', s - 8, 8), print('S', a + 24, 8);
    print('S', s - 8, 8), print('S', s - 16, 8), print('L', s - 16, 8), print('L', s - 8, 8);
    print('S', a + 32, 8), print('L', a + 32, 8), print('S', s - 8, 8), print('L', s - 8, 8);
}

static void *run(void *area) {
    kernels(area, (char *)area + STACK);
    return 0;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t others[MOST];
    if (threads < 1 || threads > MOST) return 2;
#ifdef USE_MPI
    int rank;
    static char prefix[16];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* A launcher may break the lines of several ranks into each other. */
    snprintf(prefix, sizeof prefix, "known.%d", rank);
    if (!freopen(prefix, "w", stdout)) return 2;
    snprintf(prefix, sizeof prefix, "%d.", rank);
    who = prefix;
#endif
    begin();
    /* One after the other, so that the order in which they are created is the order of the areas. */
    for (int i = 1; i < threads; i++) pthread_create(&others[i], 0, run, areas[i]);
    run(areas[0]);
    for (int i = 1; i < threads; i++) pthread_join(others[i], 0);
    finish();
    for (int i = 0; i < threads; i++) {
        thread_of_area = i;
        expected(areas[i]);
    }
    fflush(stdout);
#ifdef USE_MPI
    MPI_Finalize();
#endif
    return 0;
}
