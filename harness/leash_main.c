/* leash COMMAND ...: runs COMMAND on a leash (leash.h), for who starts it with pipes of its own.
 *
 * LOCKSTORM_PARENT says who that is. Exit status 127 when COMMAND cannot be run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/leash.h"

int main(int argc, char **argv) {
    const char *parent = getenv("LOCKSTORM_PARENT");
    if (argc < 2) return fprintf(stderr, "leash: usage: leash COMMAND ...\n"), 127;
    if (!leash_take(parent ? (pid_t)atol(parent) : getppid(), false)) return 127;
    unsetenv("LOCKSTORM_PARENT");
    execvp(argv[1], &argv[1]);
    fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
    return 127;
}
