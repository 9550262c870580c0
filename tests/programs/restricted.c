/* After MPI_Init the process may do less: argv[1] says what. Then argv[2] steps whose calls are all different, so that what is
 * recorded of them grows. */
#include "common.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void limit(int what, rlim_t most, int for_good)
{
    struct rlimit limit;
    getrlimit(what, &limit);
    limit.rlim_cur = most;
    if (for_good)
        limit.rlim_max = most;
    setrlimit(what, &limit);
}

/* Whoever asks for one of these is killed. MPI does not; it has its own use for process_vm_readv. */
static int filter(void)
{
    static const int killing[] = {SYS_fallocate, SYS_membarrier, SYS_copy_file_range, SYS_sendfile, SYS_mincore};
    enum { N = sizeof killing / sizeof *killing };
    struct sock_filter code[N + 3];
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned char i = 0; i < N; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)killing[i], (unsigned char)(N - i), 0);
    code[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {N + 3, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) + prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *how = argv[1];
    start(&argc, &argv);
    if (!strcmp(how, "filter") && filter() != 0)
        return 9;
    if (!strcmp(how, "used"))
        while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
            ;
    if (!strcmp(how, "few"))
        limit(RLIMIT_NOFILE, 8, 0);
    if (!strcmp(how, "forever"))
        limit(RLIMIT_NOFILE, 8, 1);
    /* Those of MPI are lower. */
    if (!strcmp(how, "closed")) {
        for (int i = 300; i < 1 << 16; i++)
            close(i);
        for (int i = open("/dev/null", O_RDONLY); i < 2000 && i >= 0; i = dup(i))
            ;
    }
    if (!strcmp(how, "user") && setgid(65534) + setuid(65534) != 0)
        return 9;
    int steps = atoi(argv[2]), in = 0;
    for (int i = 0; i < steps; i++)
        MPI_Sendrecv(&i, 1, MPI_INT, 0, drawn(30000, i, 1, 7), &in, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_SELF,
                     MPI_STATUS_IGNORE);
    see(&in, 1);
    finish("restricted");
    return 0;
}
