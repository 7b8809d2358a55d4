#include "harness/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLOSE_ON_EXEC = 1 << 2 }; /* CLOSE_RANGE_CLOEXEC, which older headers do not have */

bool spawn_bind(pid_t parent, bool near) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    if (getppid() != parent) return false; /* it may have died before prctl */
    if (near) setpgid(0, 0);
    else setsid();
    return true;
}

/* exec closes every descriptor from the fourth on, except those that are kept. */
static void descriptors_choose(const int *kept, int kept_count) {
    struct rlimit limit;
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_ON_EXEC) != 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        for (int fd = STDERR_FILENO + 1; fd < (int)limit.rlim_cur; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
    for (int each = 0; each < kept_count; each++) fcntl(kept[each], F_SETFD, 0);
}

/* Runs in the child, which shares the parent's memory until exec: nothing here changes what the parent reads. */
static int spawn_become(char *const *words, char *const *environment, int output, const int *kept, int kept_count,
                        pid_t parent, bool near, const sigset_t *usual) {
    if (!spawn_bind(parent, near)) return errno ? errno : ESRCH;
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) return errno;
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) return errno;
    descriptors_choose(kept, kept_count);
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL); /* no handler of the parent's runs here */
    sigprocmask(SIG_SETMASK, usual, NULL);
    execvpe(words[0], words, environment);
    return errno;
}

static size_t text_count(char *const *texts) {
    size_t count = 0;
    while (texts[count]) count++;
    return count;
}

/* Whether one of the variables has the name of this entry of an environment. */
static bool is_replaced(const char *entry, char *const *variables) {
    size_t name = strcspn(entry, "=") + 1;
    for (; *variables; variables++)
        if (strncmp(entry, *variables, name) == 0) return true;
    return false;
}

/* This process's environment with these variables. The caller frees the array; its texts belong to others. */
static char **environment_with(char *const *variables) {
    size_t added = text_count(variables), count = 0;
    char **all = malloc((text_count(environ) + added + 1) * sizeof *all);
    if (!all) abort();
    for (char **entry = environ; *entry; entry++)
        if (!is_replaced(*entry, variables)) all[count++] = *entry;
    memcpy(all + count, variables, (added + 1) * sizeof *all);
    return all;
}

/* By vfork: the cost does not grow with the parent's size, and the parent goes on once exec has succeeded or failed. */
static pid_t spawn_within(char *const *words, char *const *environment, int output, const int *kept, int kept_count,
                          bool near) {
    volatile int reason = 0;
    sigset_t all, usual;
    pid_t parent = getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &usual);
    errno = 0;
    pid_t child = vfork();
    if (child == 0) {
        reason = spawn_become(words, environment, output, kept, kept_count, parent, near, &usual);
        _exit(127);
    }
    if (child < 0) reason = errno;
    pthread_sigmask(SIG_SETMASK, &usual, NULL);
    if (reason == 0) return child;
    if (child > 0) waitpid(child, NULL, 0);
    errno = reason;
    return -1;
}

pid_t spawn_process(char *const *words, char *const *variables, int output, const int *kept, int kept_count,
                    bool near) {
    char **environment = environment_with(variables);
    pid_t child = spawn_within(words, environment, output, kept, kept_count, near);
    int reason = errno;
    free(environment);
    errno = reason;
    return child;
}
