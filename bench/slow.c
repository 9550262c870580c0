/* A file system that is far away: slow MICROSECONDS MARK COMMAND... runs a command in which every operation on files whose path
 * has MARK in it takes so many microseconds longer, and at the end says how many there were of each kind, on stderr:
 *
 *     slow: open 5 create 2 remove 3 ...
 *
 * The kernel asks this process (seccomp's notifications) before it does what the command asks for. So it works for system calls
 * that no library makes, and each process has a waiting of its own, as on a parallel file system. x86-64. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPEN, CREATE, REMOVE, LINK, LOOK, LIST, ALLOCATE, WRITE, KINDS };
static const char *const names[] = {"open", "create", "remove", "link", "look", "list", "allocate", "write"};

/* Which argument is the path, or -1: the file is the first; and which is the directory, or -1. */
static const struct call {
    int number, kind, path, directory;
} calls[] = {
    {SYS_openat, OPEN, 1, 0},       {SYS_open, OPEN, 0, -1},          {SYS_unlinkat, REMOVE, 1, 0},
    {SYS_unlink, REMOVE, 0, -1},    {SYS_rmdir, REMOVE, 0, -1},       {SYS_mkdir, CREATE, 0, -1},
    {SYS_mkdirat, CREATE, 1, 0},    {SYS_symlinkat, LINK, 2, 1},      {SYS_readlinkat, LOOK, 1, 0},
    {SYS_readlink, LOOK, 0, -1},    {SYS_newfstatat, LOOK, 1, 0},     {SYS_statx, LOOK, 1, 0},
    {SYS_getdents64, LIST, -1, 0},  {SYS_fallocate, ALLOCATE, -1, 0}, {SYS_write, WRITE, -1, 0},
    {SYS_pwrite64, WRITE, -1, 0},   {SYS_renameat2, LINK, 3, 2},      {SYS_rename, LINK, 1, -1},
};
#define CALLS (sizeof calls / sizeof *calls)

static int install(void)
{
    struct sock_filter filter[CALLS + 3];
    size_t at = 0;
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < CALLS; i++)
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, (uint8_t)(CALLS - i), 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {(unsigned short)at, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* Whether the path of a call has the mark in it. */
static int is_marked(const struct seccomp_notif *asked, const struct call *call, const char *mark)
{
    char text[64], path[8192] = "", name[4096] = "";
    if (call->path >= 0) {
        struct iovec to = {name, sizeof name - 1}, from = {(void *)asked->data.args[call->path], 256};
        if (process_vm_readv((pid_t)asked->pid, &to, 1, &from, 1, 0) <= 0)
            return 0;
    }
    if (call->directory >= 0 && name[0] != '/') {
        snprintf(text, sizeof text, "/proc/%d/fd/%d", asked->pid, (int)asked->data.args[call->directory]);
        if ((int)asked->data.args[call->directory] == AT_FDCWD)
            snprintf(text, sizeof text, "/proc/%d/cwd", asked->pid);
        ssize_t length = readlink(text, path, 4000);
        path[length > 0 ? length : 0] = 0;
        strcat(path, "/");
    }
    strcat(path, name);
    return strstr(path, mark) != NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    long delay = atol(argv[1]);
    int pipes[2], answers[2];
    if (pipe2(pipes, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
        return 2;
    pid_t child = fork();
    if (child == 0) {
        int listener = install();
        /* A process that is asked about cannot answer: the number goes by a call that is not in the list. */
        struct iovec word = {&listener, sizeof listener};
        char taken;
        if (writev(pipes[1], &word, 1) < 0 || listener < 0 || read(answers[0], &taken, 1) != 1)
            _exit(2);
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    int theirs = -1;
    if (read(pipes[0], &theirs, sizeof theirs) != sizeof theirs || theirs < 0) {
        fprintf(stderr, "slow: this kernel does not ask\n");
        return 2;
    }
    int process = (int)syscall(SYS_pidfd_open, child, 0);
    int listener = (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
    if (listener < 0) {
        perror("slow");
        kill(child, SIGKILL);
        return 2;
    }
    if (write(answers[1], "", 1) != 1)
        return 2;
    long counts[KINDS] = {0};
    struct pollfd waits[2] = {{listener, POLLIN, 0}, {process, POLLIN, 0}};
    while (poll(waits, 2, -1) >= 0 || errno == EINTR) {
        if (!(waits[0].revents & POLLIN)) {
            if (waits[1].revents || waits[0].revents)
                break;
            continue;
        }
        struct seccomp_notif asked;
        memset(&asked, 0, sizeof asked);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
            continue;
        for (size_t i = 0; i < CALLS; i++)
            if (calls[i].number == asked.data.nr && is_marked(&asked, &calls[i], argv[2])) {
                int flags = (int)asked.data.args[calls[i].path + 1];
                counts[calls[i].kind == OPEN && (flags & O_CREAT) ? CREATE : calls[i].kind]++;
                usleep((useconds_t)delay);
            }
        struct seccomp_notif_resp answer = {asked.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    int status = 0;
    waitpid(child, &status, 0);
    char line[256] = "slow:";
    for (int i = 0; i < KINDS; i++)
        sprintf(line + strlen(line), " %s %ld", names[i], counts[i]);
    fprintf(stderr, "%s\n", line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
