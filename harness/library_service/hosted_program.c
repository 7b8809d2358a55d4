#include "harness/library_service/hosted_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/scheduler/grown.h"
#include "harness/supervisor/held_calls.h"
#include "harness/supervisor/turns.h"

enum { PIPE_BYTES = 1 << 20, LINE_ROOM = 4096, LOG_MODE = 0600, SIGNAL_STATUS = 128 };

/* --- start --- */

static bool hosted_program_failed(struct hosted_program *program, const char *what) {
    snprintf(program->reason, sizeof program->reason, "%s: %s", what, strerror(errno));
    return false;
}

bool hosted_start(struct hosted_program *program, const char *path, const struct shared_page *page,
                  const struct task_slot *host, uint64_t seed, const char *log) {
    int input[] = {-1, -1}, output[] = {-1, -1}, error = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, LOG_MODE);
    *program = (struct hosted_program){.to = -1, .from = -1};
    signal(SIGPIPE, SIG_IGN); /* a program that reads no more causes EPIPE instead */
    if (error < 0) return hosted_program_failed(program, log);
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) {
        hosted_program_failed(program, "pipe");
        close(error);
        close(input[0]);
        close(input[1]);
        return false;
    }
    const int streams[] = {input[0], output[1], error};
    char *words[] = {strdup(path), NULL};
    if (!words[0]) abort();
    program->supervisor = calloc(1, sizeof *program->supervisor);
    if (!program->supervisor) abort();
    program->supervisor->ends_with_root = program->supervisor->must_rest = true;
    program->supervisor->random = random_split(seed, 0);
    program_clock_begin(&program->supervisor->clock, page, host);
    program->supervisor->streams = streams;
    bool began = turns_begin(program->supervisor, words);
    if (!began) snprintf(program->reason, sizeof program->reason, "%s", program->supervisor->reason);
    free(words[0]);
    close(error);
    close(input[0]);
    close(output[1]);
    program->to = input[1];
    program->from = output[0];
    fcntl(program->to, F_SETFL, O_NONBLOCK);
    fcntl(program->from, F_SETFL, O_NONBLOCK);
    fcntl(program->from, F_SETPIPE_SZ, PIPE_BYTES); /* nobody reads while it runs */
    return began;
}

void hosted_lead(struct hosted_program *program, uint16_t from, uint16_t to) {
    struct supervisor *supervisor = program->supervisor;
    if (supervisor->route_count < SUPERVISOR_ROUTES)
        supervisor->routes[supervisor->route_count++] = (struct supervisor_route){from, to};
}

void hosted_end(struct hosted_program *program) {
    if (!program->supervisor) return;
    turns_end(program->supervisor);
    free(program->supervisor);
    program->supervisor = NULL;
    close(program->to);
    close(program->from);
    free(program->output);
    program->output = NULL;
    program->length = program->room = program->taken = 0;
}

void hosted_seed(struct hosted_program *program, uint64_t seed) {
    program->supervisor->random = random_split(seed, 0);
}

/* --- turns --- */

void hosted_stranger_describe(const struct hosted_program *program, char text[STRANGER_TEXT]) {
    const char *stranger = program->supervisor ? program->supervisor->stranger : "";
    text[0] = '\0';
    if (stranger[0])
        snprintf(text, STRANGER_TEXT, "; it wanted to connect to %.120s, where no server of its file is", stranger);
}

static void end_describe(struct hosted_program *program) {
    const struct supervisor *supervisor = program->supervisor;
    char lacked[STRANGER_TEXT];
    int status = supervisor->status;
    if (supervisor->reason[0]) snprintf(program->reason, sizeof program->reason, "%s", supervisor->reason);
    else if (WIFSIGNALED(status))
        snprintf(program->reason, sizeof program->reason, "it was ended by signal %d", WTERMSIG(status));
    else {
        hosted_stranger_describe(program, lacked);
        snprintf(program->reason, sizeof program->reason, "it ended with status %d%s", WEXITSTATUS(status), lacked);
    }
}

bool hosted_run(struct hosted_program *program) {
    if (program->reason[0]) return false;
    program->has_run = true;
    if (turns_run(program->supervisor)) return true;
    end_describe(program);
    return false;
}

bool hosted_has_exited(const struct hosted_program *program) {
    return program->supervisor && program->reason[0] && !program->supervisor->reason[0];
}

int hosted_exit_status(const struct hosted_program *program) {
    int status = program->supervisor->status;
    return WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
}

bool hosted_has_news(const struct hosted_program *program) {
    return !program->reason[0] && turns_have_news(program->supervisor);
}

int64_t hosted_deadline_ns(const struct hosted_program *program) {
    if (program->reason[0]) return INT64_MAX;
    return program_clock_trial_ns(&program->supervisor->clock, turns_deadline_ns(program->supervisor));
}

bool hosted_naps(const struct hosted_program *program, int64_t limit_ns) {
    return !program->reason[0] && held_calls_any_shorter(program->supervisor, limit_ns);
}

int64_t hosted_late_ns(const struct hosted_program *program) {
    return program->supervisor ? program->supervisor->late_ns : 0;
}

/* --- lines --- */

bool hosted_send(struct hosted_program *program, const char *line) {
    struct iovec parts[] = {{.iov_base = (void *)(uintptr_t)line, .iov_len = strlen(line)}, /* which is only read */
                            {.iov_base = (char[]){'\n'}, .iov_len = 1}};
    program->stirred = true;
    /* A pipe takes a short line as a whole, or nothing of it when it is full because the program does not read. */
    return writev(program->to, parts, 2) == (ssize_t)parts[0].iov_len + 1;
}

static void output_read(struct hosted_program *program) {
    for (;;) {
        program->output = grown(program->output, program->length + LINE_ROOM, &program->room, 1);
        ssize_t got = read(program->from, program->output + program->length, program->room - program->length - 1);
        if (got <= 0) return;
        program->stirred = true; /* it can write again */
        program->length += (size_t)got;
    }
}

char *hosted_line(struct hosted_program *program) {
    program->length -= program->taken;
    if (program->taken) memmove(program->output, program->output + program->taken, program->length);
    program->taken = 0;
    output_read(program);
    char *end = memchr(program->output, '\n', program->length);
    if (!end) return NULL;
    *end = '\0';
    program->taken = (size_t)(end + 1 - program->output);
    return program->output;
}
