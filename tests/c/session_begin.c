/* session_begin PAGE: a session with ZooKeeper whose client cannot have the watchdog that sends its heartbeats, because
 * another one runs. In real time, against a socket that accepts connections and never answers. PAGE is a path where no
 * file exists yet.
 *
 * Prints one JSON line: what env_session_open and env_session_state said while the other watchdog ran and after it was
 * stopped, and whether each of the two calls made the client connect. Exit status: 0, 2 it could not be tried. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/environment/env_live.h"

enum { TIMEOUT_MS = 4000, REPLY_LIMIT_MS = 100, CONNECT_LIMIT_MS = 20000, TASKS = 2 };

static const char *const STATES[] = {
    [ENV_SESSION_LOST] = "lost", [ENV_SESSION_SUSPENDED] = "suspended", [ENV_SESSION_CONNECTED] = "connected"};
static const char *const OUTCOMES[] = {
    [OUTCOME_UNKNOWN] = "unknown", [OUTCOME_OK] = "ok", [OUTCOME_REFUSED] = "refused"};

static int listen_on(char *address, size_t size) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof any) < 0 || listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *)&any, &length) < 0)
        return -1;
    snprintf(address, size, "127.0.0.1:%u", ntohs(any.sin_port));
    return fd;
}

static void sleep_until_stopped(struct env *env, void *argument) {
    (void)argument;
    while (!env_watchdog_stopping(env)) env_sleep(env, 1000);
}

static void on_change(struct env *env, enum env_session_state state, void *argument) {
    (void)env, (void)state, (void)argument;
}

/* Opens a session and prints what came of it; the client connects within limit_ms, or not at all. */
static void open_session(struct env *env, int listening, int limit_ms, const char *when) {
    enum outcome outcome = env_session_open(env, TIMEOUT_MS, on_change, NULL);
    enum env_session_state state = env_session_state(env);
    bool connected = poll(&(struct pollfd){.fd = listening, .events = POLLIN}, 1, limit_ms) > 0;
    printf("\"%s\": {\"outcome\": \"%s\", \"state\": \"%s\", \"connected\": %s}", when, OUTCOMES[outcome],
           STATES[state], connected ? "true" : "false");
}

int main(int argc, char **argv) {
    struct history_error error = {.text = "usage: session_begin PAGE"};
    struct shared_page *page = argc == 2 && shared_page_create(argv[1], HISTORY_TIME_REAL, 1, SHARED_PAGE_TASKS, &error)
                                   ? shared_page_open(argv[1], &error)
                                   : NULL;
    char address[32];
    int listening = listen_on(address, sizeof address);
    if (!page || listening < 0) return fprintf(stderr, "session_begin: %s\n", error.text), 2;
    int turn_fd[TASKS], yield_fd = eventfd(0, EFD_CLOEXEC);
    for (int each = 0; each < TASKS; each++) turn_fd[each] = eventfd(0, EFD_CLOEXEC);
    const struct env_live_options options = {.worker = {page, &page->tasks[0], turn_fd[0], yield_fd, NULL},
                                             .watchdog = {page, &page->tasks[1], turn_fd[1], yield_fd, NULL},
                                             .nodes = {address},
                                             .node_count = 1,
                                             .reply_limit_ms = REPLY_LIMIT_MS};
    struct env *env = env_live_open(&options);
    bool started = env_watchdog_start(env, sleep_until_stopped, NULL);
    printf("{");
    open_session(env, listening, 0, "beside_another");
    env_watchdog_stop(env);
    printf(", ");
    open_session(env, listening, CONNECT_LIMIT_MS, "after_it");
    printf("}\n");
    env_live_close(env);
    close(listening);
    for (int each = 0; each < TASKS; each++) close(turn_fd[each]);
    close(yield_fd);
    shared_page_close(page);
    return started ? 0 : 2;
}
