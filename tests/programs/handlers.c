/* What a program does with signals: handlers HOW. Prints what it finds, which must be the same with and without a
 * tracer. "query" asks for the action of every signal in a constructor, before and after MPI_Init, and in children;
 * "chain" calls the handler that was there before its own; "faults" handles faults in every way that C offers; "torn PARTS" cuts the
 * tracer's files under its feet. */
#define _GNU_SOURCE
#include "common.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* glibc declares some of them no longer. */
extern sighandler_t bsd_signal(int, sighandler_t);
extern int __sigaction(int, const struct sigaction *, struct sigaction *);

static const char *handler_name(void *handler)
{
    static char name[256];
    Dl_info info;
    if (handler == (void *)SIG_DFL)
        return "default";
    if (handler == (void *)SIG_IGN)
        return "ignored";
    if (!dladdr(handler, &info))
        return "a handler in no object";
    const char *file = strrchr(info.dli_fname, '/');
    snprintf(name, sizeof name, "a handler in %s", file ? file + 1 : info.dli_fname);
    return name;
}

static void query(const char *when)
{
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int s = 1; s <= 64; s++) {
        struct sigaction old, other;
        memset(&old, 0, sizeof old);
        memset(&other, 0, sizeof other);
        int code = sigaction(s, NULL, &old);
        __sigaction(s, NULL, &other);
        if (code != 0) {
            printf("%s: signal %d: error %d\n", when, s, errno);
            continue;
        }
        int masked = 0;
        for (int m = 1; m <= 64; m++)
            masked += sigismember(&old.sa_mask, m) == 1;
        printf("%s: signal %d: %s, flags %x, mask of %d%s%s\n", when, s, handler_name(old.sa_sigaction),
               (unsigned)old.sa_flags, masked, sigismember(&blocked, s) == 1 ? ", blocked" : "",
               old.sa_sigaction == other.sa_sigaction ? "" : ", or another one");
    }
    fflush(stdout);
}

/* The GNU linker gives constructors what main is given. */
__attribute__((constructor)) static void early(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "query"))
        query("constructor");
}

static void children(char *self)
{
    for (int how = 0; how < 3; how++) {
        fflush(stdout);
        pid_t child = how == 2 ? vfork() : fork();
        if (child == 0) {
            if (how == 0) {
                query("fork");
                /* And sets one: that is nobody else's. */
                signal(SIGSEGV, SIG_IGN);
                query("fork, changed");
                _exit(0);
            }
            unsetenv("LD_PRELOAD");
            if (how == 2)
                signal(SIGBUS, SIG_DFL);
            execl(self, self, "child", (char *)NULL);
            _exit(9);
        }
        int status;
        waitpid(child, &status, 0);
        printf("child %d: %d\n", how, status);
    }
}

static struct sigaction before[65];
static volatile sig_atomic_t handled;

/* As many programs do: with one argument, whatever the old one wants. */
static void chained(int signal)
{
    handled++;
    void (*old)(int) = before[signal].sa_handler;
    if (old != SIG_DFL && old != SIG_IGN && !(before[signal].sa_flags & SA_SIGINFO))
        old(signal);
    else if (old != SIG_DFL && old != SIG_IGN)
        before[signal].sa_sigaction(signal, NULL, NULL);
}

static void chain(void)
{
    /* Not those that UCX and Open MPI handle: faults, which would end the program (see "faults"), and SIGHUP. */
    static const int all[] = {SIGINT, SIGQUIT, SIGTRAP, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM,
                              SIGXCPU, SIGXFSZ, SIGSYS, SIGVTALRM, SIGPROF, SIGCHLD, SIGCONT, SIGIO};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = chained;
        if (sigaction(all[i], &action, &before[all[i]]) != 0)
            continue;
        raise(all[i]);
        MPI_Barrier(MPI_COMM_SELF);
    }
    printf("%d handled\n", (int)handled);
}

static sigjmp_buf back;
static char *volatile wanted;
static char *page;
static char other_stack[1 << 16];

/* What a handler can see of how it was called. */
static void tell(const char *form, int number)
{
    sigset_t blocked;
    stack_t stack;
    char here;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    sigaltstack(NULL, &stack);
    printf("%s: signal %d, blocked %d, SIGUSR1 blocked %d, on another stack %d %d, errno %d\n", form, number,
           sigismember(&blocked, number), sigismember(&blocked, SIGUSR1), !!(stack.ss_flags & SS_ONSTACK),
           &here >= other_stack && &here < other_stack + sizeof other_stack, errno);
}

static void one(int number)
{
    tell("one argument", number);
    siglongjmp(back, 1);
}

static void three(int number, siginfo_t *info, void *context)
{
    tell("three arguments", number);
    printf("    signal %d, code %d, address %s, context %d\n", info->si_signo, info->si_code,
           info->si_code <= 0 ? "of none" : info->si_addr == wanted ? "as expected" : "of something else",
           context != NULL);
    siglongjmp(back, 1);
}

/* Makes the page accessible, and goes on where it was. */
static void mending(int number, siginfo_t *info, void *context)
{
    (void)context;
    printf("mended signal %d at %d\n", number, (int)((char *)info->si_addr - page));
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void fault(void)
{
    if (sigsetjmp(back, 1) == 0) {
        errno = 77;
        *wanted = 1;
        puts("went on");
    }
    MPI_Barrier(MPI_COMM_SELF);
}

static void send_fault(int number)
{
    if (sigsetjmp(back, 1) == 0) {
        errno = 78;
        raise(number);
        puts("went on");
    }
    MPI_Barrier(MPI_COMM_SELF);
}

static int deep(int n)
{
    volatile char room[4096];
    room[0] = (char)n;
    return n < 0 ? 0 : deep(n + 1) + room[0];
}

static void installed(const char *how, int number)
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    printf("%s: %s, flags %x\n", how, handler_name(now.sa_sigaction), (unsigned)now.sa_flags);
}

static void faults(void)
{
    static const int all[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    wanted = page + 24;
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    struct sigaction action, old, first[5];
    for (int i = 0; i < 5; i++)
        sigaction(all[i], NULL, &first[i]);
    static const int flags[] = {0, SA_SIGINFO, SA_SIGINFO | SA_ONSTACK, SA_NODEFER, SA_RESETHAND | SA_SIGINFO, SA_RESTART};
    for (unsigned f = 0; f < sizeof flags / sizeof *flags; f++) {
        for (int i = 0; i < 5; i++) {
            memset(&action, 0, sizeof action);
            action.sa_flags = flags[f];
            if (flags[f] & SA_SIGINFO)
                action.sa_sigaction = three;
            else
                action.sa_handler = one;
            sigaddset(&action.sa_mask, SIGUSR1);
            sigaction(all[i], &action, &old);
            printf("before: %s\n", handler_name(old.sa_sigaction));
            installed("now", all[i]);
            if (all[i] == SIGSEGV)
                fault();
            else
                send_fault(all[i]);
            installed("then", all[i]);
        }
    }
    /* The other ways to install one. */
    for (int i = 0; i < 5; i++) {
        int s = all[i];
        printf("signal: %s\n", handler_name(signal(s, one)));
        send_fault(s);
        printf("bsd_signal: %s\n", handler_name(bsd_signal(s, one)));
        send_fault(s);
        printf("sigset: %s\n", handler_name(sigset(s, one)));
        send_fault(s);
        printf("held: %s\n", handler_name(sigset(s, SIG_HOLD)));
        printf("sigset: %s\n", handler_name(sigset(s, one)) ? "held before" : "");
        installed("after sigset", s);
        printf("siginterrupt: %d\n", siginterrupt(s, 1));
        installed("interrupts", s);
        printf("siginterrupt: %d\n", siginterrupt(s, 0));
        installed("restarts", s);
        printf("sysv_signal: %s\n", handler_name(__sysv_signal(s, one)));
        send_fault(s);
        installed("used up", s);
        printf("sigignore: %d\n", sigignore(s));
        installed("ignored", s);
        raise(s);
        printf("wrong: %d\n", sigaction(s, (struct sigaction *)NULL, NULL));
        sigaction(s, &first[i], NULL);
    }
    printf("no such signal: %d", sigaction(4711, &action, NULL));
    printf(" %d\n", errno);
    /* A handler that mends and goes on, more than once. */
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = mending;
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 3; i++) {
        mprotect(page, 4096, PROT_NONE);
        fault();
    }
    /* The stack runs out. */
    action.sa_flags = SA_ONSTACK;
    action.sa_handler = one;
    sigaction(SIGSEGV, &action, NULL);
    if (sigsetjmp(back, 1) == 0)
        printf("%d\n", deep(0));
    puts("stack ran out");
    /* An address that no mapping has: no page is behind it, and no file. */
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = three;
    sigaction(SIGBUS, &action, NULL);
    char name[] = "/tmp/handlers.XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    wanted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    fault();
    for (int i = 0; i < 5; i++)
        sigaction(all[i], &first[i], NULL);
}

/* Cuts the tracer's files, makes calls that are written there, and looks who is told. */
static void torn(const char *parts)
{
    char command[4096];
    struct sigaction action;
    snprintf(command, sizeof command, "for f in %s/*.part; do : >$f; done", parts);
    puts(system(command) == 0 ? "cut" : "not cut");
    memset(&action, 0, sizeof action);
    action.sa_handler = one;
    action.sa_flags = SA_RESETHAND;
    sigaction(SIGBUS, &action, NULL);
    if (sigsetjmp(back, 1) == 0) {
        for (int i = 0; i < 10; i++)
            MPI_Barrier(MPI_COMM_SELF);
        puts("not handled");
    }
    /* It is still there, for one fault of the program's own. */
    send_fault(SIGBUS);
    installed("used up", SIGBUS);
    if (system(command) != 0)
        puts("not cut");
    for (int i = 0; i < 10; i++)
        MPI_Barrier(MPI_COMM_SELF);
    puts("not handled");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "child")) {
        query("exec");
        return 0;
    }
    int asking = !strcmp(argv[1], "query");
    if (asking)
        query("main");
    signal(SIGUSR2, SIG_IGN);
    signal(SIGFPE, SIG_IGN);
    start(&argc, &argv);
    if (rank == 0) {
        for (int i = 0; i < 100; i++)
            MPI_Barrier(MPI_COMM_SELF);
        if (asking) {
            query("initialised");
            children(argv[0]);
            query("after children");
        }
        signal(SIGFPE, SIG_DFL);
        if (!strcmp(argv[1], "chain"))
            chain();
        if (!strcmp(argv[1], "faults"))
            faults();
        if (!strcmp(argv[1], "torn") && argc > 2)
            torn(argv[2]);
        MPI_Barrier(MPI_COMM_SELF);
    }
    MPI_Finalize();
    if (asking && rank == 0)
        query("finalized");
    return 0;
}
