/* liblockstorm-near.so: a server's processes stay in the server's session (spawn.h says why). PostgreSQL gives each of
 * its processes a session, to signal it with its children; for that, a process group does as well. */
#include <unistd.h>

pid_t setsid(void) {
    return setpgid(0, 0) == 0 ? getpid() : -1;
}
