/* http_requests PAGE SOCKET LIMIT_MS WORD...: the live environment's requests to a server that speaks HTTP on a unix
 * socket, in real time. PAGE is a path where no file exists yet.
 *
 * Words, executed one after the other: post (a request to /ask), stream (open one to /stream), line (its next line),
 * end (close it), sleep (LIMIT_MS). Prints a line for each post, stream and line: its kind, and its text if it has
 * one.
 *
 * Exit status: 0, or 2 for bad usage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "harness/environment/env_live.h"

enum { ARGUMENT_PAGE = 1, ARGUMENT_SOCKET, ARGUMENT_LIMIT_MS, ARGUMENT_WORDS };

static void print_reply(const struct env_reply *reply) {
    static const char *const kinds[] = {
        [ENV_REPLY_UNKNOWN] = "unknown", [ENV_REPLY_STRING] = "string", [ENV_REPLY_ERROR] = "error"};
    printf("%s %.*s\n", kinds[reply->kind], (int)reply->length, reply->text ? reply->text : "");
}

static bool act(struct env *env, const char *word, int64_t limit_ms) {
    if (strcmp(word, "post") == 0) return print_reply(env_post(env, 0, limit_ms, "/ask", "{}")), true;
    if (strcmp(word, "line") == 0) return print_reply(env_stream_line(env, 0, limit_ms)), true;
    if (strcmp(word, "end") == 0) return env_stream_end(env, 0), true;
    if (strcmp(word, "sleep") == 0) return env_sleep(env, limit_ms), true;
    if (strcmp(word, "stream") != 0) return false;
    printf("%s\n", env_stream(env, 0, "/stream", "{}") == OUTCOME_OK ? "begun" : "unknown");
    return true;
}

int main(int argc, char **argv) {
    if (argc <= ARGUMENT_WORDS) return fprintf(stderr, "usage: http_requests PAGE SOCKET LIMIT_MS WORD...\n"), 2;
    const char *path = argv[ARGUMENT_PAGE];
    struct history_error error;
    struct shared_page *page = shared_page_create(path, HISTORY_TIME_REAL, 1, SHARED_PAGE_TASKS, &error)
                                   ? shared_page_open(path, &error)
                                   : NULL;
    if (!page) return fprintf(stderr, "http_requests: %s\n", error.text), 2;
    unlink(path); /* it is mapped */
    int turn_fd = eventfd(0, EFD_CLOEXEC), yield_fd = eventfd(0, EFD_CLOEXEC);
    struct env_live_options options = {.worker = {page, &page->tasks[0], turn_fd, yield_fd, NULL}, .node_count = 1};
    options.nodes[0] = argv[ARGUMENT_SOCKET];
    struct env *env = env_live_open(&options);
    bool known = true;
    for (int each = ARGUMENT_WORDS; known && each < argc; each++)
        known = act(env, argv[each], strtoll(argv[ARGUMENT_LIMIT_MS], NULL, 10));
    env_live_close(env);
    close(turn_fd);
    close(yield_fd);
    shared_page_close(page);
    return known ? 0 : 2;
}
