/* spawn [--near] [--user=UID:GID] COMMAND ...: runs COMMAND bound to its parent (spawn.h, which explains --near), for
 * callers that connect its descriptors themselves.
 *
 * With --user COMMAND runs as that user and group, and in no other group: for servers that refuse to be root. The
 * parent is the process LOCKSTORM_PARENT; without it, the one that started this program. Exit status 127: COMMAND
 * cannot be run. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/process/spawn.h"

static const char NEAR[] = "--near", USER[] = "--user=";

/* "UID:GID" */
static bool user_become(const char *text) {
    char *end;
    uid_t user = (uid_t)strtoul(text, &end, 10);
    gid_t group = *end == ':' ? (gid_t)strtoul(end + 1, &end, 10) : 0;
    if (*end != '\0' || user == 0) {
        errno = EINVAL;
        return false;
    }
    return setgroups(0, NULL) == 0 && setgid(group) == 0 && setuid(user) == 0;
}

int main(int argc, char **argv) {
    int word = 1;
    const char *parent = getenv("LOCKSTORM_PARENT");
    bool near = argc > word && strcmp(argv[word], NEAR) == 0;
    if (near) word++;
    if (argc > word && strncmp(argv[word], USER, sizeof USER - 1) == 0)
        if (!user_become(argv[word++] + sizeof USER - 1)) {
            perror("spawn: --user");
            return 127;
        }
    if (word >= argc) {
        fprintf(stderr, "spawn: usage: spawn [--near] [--user=UID:GID] COMMAND ...\n");
        return 127;
    }
    /* After the change of user, which removes the binding. */
    if (!spawn_bind(parent ? (pid_t)atol(parent) : getppid(), near)) return 127;
    unsetenv("LOCKSTORM_PARENT");
    execvp(argv[word], &argv[word]);
    fprintf(stderr, "%s: %s\n", argv[word], strerror(errno));
    return 127;
}
