/* Functions made at run time, in no file: as Julia, numba and ctypes make them. MPI calls them, and they call MPI. More of
 * them than a tracer may keep apart. */
#include "common.h"

#include <stdint.h>
#include <sys/mman.h>

enum { FUNCTIONS = 300, BYTES = 64 };

static int flag;

#ifndef __x86_64__
static void plain(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
    MPI_Initialized(&flag);
}
#endif

/* f(..) { MPI_Initialized(&flag); } with the call where it stands, for every second one as the jump that it may be. */
static MPI_User_function *generate(unsigned char *code, int jumps)
{
#ifdef __x86_64__
    int n = 0;
    uint64_t words[2] = {(uint64_t)(uintptr_t)&flag, (uint64_t)(uintptr_t)&MPI_Initialized};
    if (!jumps)
        memcpy(code + n, "\x48\x83\xec\x08", 4), n += 4; /* sub rsp, 8 */
    memcpy(code + n, "\x48\xbf", 2), memcpy(code + n + 2, &words[0], 8), n += 10; /* mov rdi, flag */
    memcpy(code + n, "\x48\xb8", 2), memcpy(code + n + 2, &words[1], 8), n += 10; /* mov rax, MPI_Initialized */
    if (jumps)
        memcpy(code + n, "\xff\xe0", 2); /* jmp rax */
    else
        memcpy(code + n, "\xff\xd0\x48\x83\xc4\x08\xc3", 7); /* call rax; add rsp, 8; ret */
    MPI_User_function *function;
    memcpy(&function, &code, sizeof function);
    return function;
#else
    (void)code, (void)jumps;
    return plain;
#endif
}

/* Kilobytes of memory that this process has. */
static long resident(void)
{
    long pages = 0, held = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages, &held) != 2)
        held = -1;
    if (file)
        fclose(file);
    return held * 4;
}

int main(int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 100, value = 1, sum = 0;
    start(&argc, &argv);
    unsigned char *code = mmap(NULL, FUNCTIONS * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_User_function *functions[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; i++)
        /* Beyond what a tracer keeps apart, a jump could not be told from MPI's own calls: those calls stand. */
        functions[i] = generate(code + i * BYTES, i < 200 && i % 2);
    mprotect(code, FUNCTIONS * BYTES, PROT_READ | PROT_EXEC);
    for (int i = 0; i < FUNCTIONS; i++) {
        MPI_Op op;
        MPI_Op_create(functions[i], 1, &op);
        MPI_Reduce_local(&value, &sum, 1, MPI_INT, op);
        MPI_Op_free(&op);
    }
    MPI_Op last;
    MPI_Op_create(functions[FUNCTIONS - 1], 1, &last);
    long before = resident();
    for (int i = 0; i < calls; i++)
        MPI_Reduce_local(&value, &sum, 1, MPI_INT, last);
    long grown = resident() - before;
    if (grown > 4096)
        printf("grown by %ld KiB\n", grown);
    MPI_Op_free(&last);
    checksum += flag;
    finish("generated");
    return 0;
}
