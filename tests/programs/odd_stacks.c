/* Calls from stacks that nobody would write down: a coroutine's, at whose end stands the address of what ends it; below
 * hand-written code that says something wrong about its frame; from frames that align themselves; and from libraries
 * that come one after the other to the same place. Arguments: two such libraries. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define APART __attribute__((noinline, noclone))
#define ROOM (256 << 10)

__attribute__((used)) static void *stack_of_main;

static APART void reduce(void)
{
    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    __asm__ volatile("");
}

static APART void coroutine(void)
{
    for (int i = 0; i < 3; i++) {
        reduce();
    }
    __asm__ volatile("");
}

void switch_to(void *stack);
void switch_back(void);
void through(void (*function)(void));

/* Right before `switch_back`, where it looks as if a call returned to, is code with tables. `through` uses the frame pointer
 * for something else than its tables say. */
__asm__(".text\n"
        "switch_to:\n .cfi_startproc\n"
        " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp, stack_of_main(%rip)\n mov %rdi, %rsp\n ret\n .cfi_endproc\n"
        "switch_back:\n mov stack_of_main(%rip), %rsp\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
        "through:\n .cfi_startproc\n push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset 6, -16\n"
        " mov $42, %rbp\n .cfi_def_cfa_register 6\n call *%rdi\n pop %rbp\n .cfi_def_cfa 7, 8\n ret\n .cfi_endproc\n");

static APART void fill(void *memory, int with)
{
    memset(memory, with, 64);
    __asm__ volatile("" ::: "memory");
}

static APART void aligned(int length)
{
    double row[8] __attribute__((aligned(64)));
    char changing[length];
    fill(row, length);
    fill(changing, length);
    reduce();
    fill(row, 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    char *memory = mmap(NULL, ROOM + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, ROOM, PROT_READ | PROT_WRITE);
    void **top = (void **)(memory + ROOM);
    top[-1] = (void *)switch_back;
    top[-2] = (void *)coroutine;
    switch_to(top - 2);
    for (int i = 0; i < 3; i++) {
        through(reduce);
    }
    for (int i = 0; i < 6; i++) {
        aligned(64 << i % 2);
    }
    for (int i = 0; i < 4 && argc > 2; i++) {
        void *library = dlopen(argv[1 + i % 2], RTLD_NOW);
        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        ((void (*)(void))dlsym(library, "in_library"))();
        dlclose(library);
    }
    MPI_Finalize();
    return 0;
}
