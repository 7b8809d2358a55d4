/* leash [--user=UID:GID] [NAME=VALUE ...] -- COMMAND ...: runs COMMAND so that it cannot outlive its parent.
 *
 * It is killed when the parent's thread that started it ends (PR_SET_PDEATHSIG, kept over exec), stands in a session of
 * its own so that a Ctrl-C at the terminal reaches only the driver, and gets the given variables added to its
 * environment. With --user it runs as that user and group, and in no other group: for servers that refuse to be root.
 * Exit status 127 when COMMAND cannot be run. */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char USER[] = "--user=";

/* "UID:GID" */
static int user_become(const char *text) {
    char *end;
    uid_t user = (uid_t)strtoul(text, &end, 10);
    gid_t group = *end == ':' ? (gid_t)strtoul(end + 1, &end, 10) : 0;
    if (*end != '\0' || user == 0) return errno = EINVAL, -1;
    return setgroups(0, NULL) != 0 || setgid(group) != 0 || setuid(user) != 0 ? -1 : 0;
}

int main(int argc, char **argv) {
    int word = 1;
    if (argc > 1 && strncmp(argv[1], USER, sizeof USER - 1) == 0)
        if (user_become(argv[word++] + sizeof USER - 1) != 0) return perror("leash: --user"), 127;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return perror("leash: prctl"), 127; /* another user loses it */
    const char *parent = getenv("LOCKSTORM_PARENT");                               /* it may have died before prctl */
    if (parent && atol(parent) != getppid()) return 127;
    unsetenv("LOCKSTORM_PARENT");
    setsid();
    for (; word < argc && strcmp(argv[word], "--") != 0; word++)
        if (!strchr(argv[word], '=') || putenv(argv[word]) != 0) return fprintf(stderr, "leash: usage\n"), 127;
    if (word + 1 >= argc)
        return fprintf(stderr, "leash: usage: leash [--user=UID:GID] [NAME=VALUE ...] -- COMMAND ...\n"), 127;
    execvp(argv[word + 1], &argv[word + 1]);
    fprintf(stderr, "%s: %s\n", argv[word + 1], strerror(errno));
    return 127;
}
