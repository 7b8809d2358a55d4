/* A zygote: a server that is loaded and linked but has not entered its main. For each request it makes a child that
 * does, which takes about half as long as a start by exec: the rest goes to the loader and to OpenSSL's tables, and a
 * trial is short. The child runs the same program with the same main, and is the driver's child as if the driver had
 * started it.
 *
 * A request is one packet of texts, each ended by a zero byte: the number of words that follow the program's own, those
 * words, and variables for its environment (NAME=VALUE). The descriptor for its output comes with it. The answer is the
 * child's process id, or a negative errno. The zygote ends with its socket, and with the thread that started it. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/process/preload/preload.h"
#include "harness/process/spawn.h"

enum { REQUEST_BYTES = 1 << 16, WORDS = 256 };
/* OPENSSL_INIT_LOAD_CRYPTO_STRINGS, OPENSSL_INIT_LOAD_CONFIG and OPENSSL_INIT_ATFORK: what redis-server asks for. */
enum { OPENSSL_AS_REDIS = 0x2 | 0x40 | 0x20000 };

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

int __libc_start_main(main_function *program, int count, char **words, void (*begin)(void), void (*end)(void),
                      void (*loader_end)(void), void *stack_end);

static main_function *real_main;

/* The zygote's last word, which is long: children put their words there, where ps looks for them. */
struct room {
    char *at;
    size_t size;
};

static void *symbol_find(const char *name) {
    return dlsym(RTLD_DEFAULT, name);
}

/* What every child would do first; about a fifth of the time that it takes until it listens. */
static void openssl_begin(void) {
    int (*init)(uint64_t, const void *);
    int (*poll)(void);
    *(void **)&init = symbol_find("OPENSSL_init_crypto");
    *(void **)&poll = symbol_find("RAND_poll");
    if (init && init(OPENSSL_AS_REDIS, NULL) && poll) poll();
}

/* Returns the request's size and the descriptor that came with it; -1: no request will come any more. */
static ssize_t request_receive(int socket, char *text, int *output) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {.iov_base = text, .iov_len = REQUEST_BYTES - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t size;
    do size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    const struct cmsghdr *sent = CMSG_FIRSTHDR(&message);
    if (size <= 0 || !sent || sent->cmsg_type != SCM_RIGHTS) return -1;
    memcpy(output, CMSG_DATA(sent), sizeof *output);
    return size;
}

/* The child may run on the processors on which the driver may. */
static void processors_inherit(pid_t parent) {
    cpu_set_t allowed;
    if (sched_getaffinity(parent, sizeof allowed, &allowed) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

static char *text_after(char *text) {
    return text + strlen(text) + 1;
}

/* Runs in the child. `text` has a zero byte behind its last. */
static int child_begin(char **own, int own_count, struct room room, char *text, size_t size, int output, pid_t parent) {
    static char *words[WORDS + 1];
    if (!spawn_bind(parent, false) || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) _exit(127);
    close(output);
    processors_inherit(parent);
    long count = own_count + strtol(text, NULL, 10);
    if (count > WORDS) _exit(127);
    char *first = text_after(text), *variables = first;
    for (long each = own_count; each < count; each++) variables = text_after(variables);
    size_t words_size = (size_t)(variables - first);
    char *place = words_size <= room.size ? memcpy(room.at, first, words_size) : first;
    for (int each = 0; each < own_count; each++) words[each] = own[each];
    for (long each = own_count; each < count; each++, place = text_after(place)) words[each] = place;
    for (; variables < text + size; variables = text_after(variables)) putenv(variables);
    preload_map_clock();
    return real_main((int)count, words, environ);
}

/* Makes a child of this process's parent, not of this process. The C library's fork cannot do that; what fork does
 * besides concerns other threads and the locks they hold, and there are none. The library goes on using the zygote's
 * thread id for the child's. No other thread has that id while the zygote lives, and the child lives no longer. */
static pid_t sibling_make(void) {
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
}

static int zygote_serve(int socket, char **own, int own_count, struct room room) {
    static char text[REQUEST_BYTES];
    int output;
    ssize_t size;
    pid_t parent = getppid();
    while ((size = request_receive(socket, text, &output)) > 0) {
        text[size] = 0;
        pid_t child = sibling_make();
        if (child == 0) {
            close(socket);
            return child_begin(own, own_count, room, text, (size_t)size, output, parent);
        }
        int32_t answer = child < 0 ? -errno : child;
        close(output);
        if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) break;
    }
    _exit(0);
}

static int zygote_main(int count, char **words, char **environment) {
    const char *socket = getenv(ZYGOTE_VARIABLE);
    if (!socket || count < 2) return real_main(count, words, environment);
    struct room room = {.at = words[count - 1], .size = strlen(words[count - 1])};
    int number = atoi(socket);
    unsetenv(ZYGOTE_VARIABLE); /* if this is a script, the program that it runs is no zygote */
    memset(room.at, 0, room.size);
    openssl_begin();
    return zygote_serve(number, words, count - 1, room);
}

int __libc_start_main(main_function *program, int count, char **words, void (*begin)(void), void (*end)(void),
                      void (*loader_end)(void), void *stack_end) {
    start_function *start;
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = program;
    return start(zygote_main, count, words, begin, end, loader_end, stack_end);
}
