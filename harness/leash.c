/* leash [--near] [NAME=VALUE ...] -- COMMAND ...: runs COMMAND so that it cannot outlive its parent.
 *
 * It is killed when the parent's thread that started it ends (PR_SET_PDEATHSIG, kept over exec), stands in a session of
 * its own so that a Ctrl-C at the terminal reaches only the driver, and gets the given variables added to its
 * environment. Exit status 127 when COMMAND cannot be run.
 *
 * --near: in the parent's session, in a process group of its own. Linux shares the processor out among sessions first
 * (sched_autogroup), so processes that answer each other many thousand times a second belong in one: on a busy core
 * they were seen thirty times as fast. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int word = 1;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return perror("leash: prctl"), 127;
    const char *parent = getenv("LOCKSTORM_PARENT"); /* it may have died before prctl */
    if (parent && atol(parent) != getppid()) return 127;
    unsetenv("LOCKSTORM_PARENT");
    bool near = argc > 1 && strcmp(argv[1], "--near") == 0;
    if (near) setpgid(0, 0), word++;
    else setsid();
    for (; word < argc && strcmp(argv[word], "--") != 0; word++)
        if (!strchr(argv[word], '=') || putenv(argv[word]) != 0) return fprintf(stderr, "leash: usage\n"), 127;
    if (word + 1 >= argc) return fprintf(stderr, "leash: usage: leash [--near] [NAME=VALUE ...] -- COMMAND ...\n"), 127;
    execvp(argv[word + 1], &argv[word + 1]);
    fprintf(stderr, "%s: %s\n", argv[word + 1], strerror(errno));
    return 127;
}
