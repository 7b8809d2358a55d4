#include "harness/environment/adapter_session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/scheduler/hang_limit.h"

enum { CLOSE_ON_EXEC = 1 << 2, END_LIMIT_MS = 5000, POLL_MS = 5, REASON_ROOM = 96, PIPE_BYTES = 1 << 20 };

struct adapter_session {
    pid_t pid;
    int to, from;                         /* the client's ends of the program's input and output */
    char received[ADAPTER_LINE_MOST + 1]; /* not returned yet: from `consumed` on */
    size_t length, consumed;
    char reason[REASON_ROOM]; /* why no line comes any more */
};

/* In the child: the program under its supervisor, which takes the turns of `task`. */
static void become_supervised(const struct adapter_launch *launch, const struct task *task) {
    const struct shared_page *page = task->page;
    char number[24], seed[24], turn[24], yield[24];
    int64_t stream = task->place - page->tasks + launch->life * SHARED_PAGE_TASKS;
    snprintf(number, sizeof number, "%td", task->place - page->tasks);
    snprintf(seed, sizeof seed, "%lld", (long long)(page->seed ^ (uint64_t)stream << 32));
    snprintf(turn, sizeof turn, "%d", task->turn_fd);
    snprintf(yield, sizeof yield, "%d", task->yield_fd);
    fcntl(task->turn_fd, F_SETFD, 0);
    fcntl(task->yield_fd, F_SETFD, 0);
    execl(launch->supervisor, launch->supervisor, "--page", launch->page, "--task", number, "--seed", seed, "--turn-fd",
          turn, "--yield-fd", yield, launch->program, (char *)NULL);
}

/* A supervisor that has ended without giving its turn back would be waited for without end: the client ends as well. */
static const struct task *supervised;
static volatile sig_atomic_t supervisor_pid;

static void on_child(int number) {
    static const char SENTENCE[] = "supervisor: it was killed, or could not be started\n";
    (void)number;
    int before = errno;
    siginfo_t info = {.si_pid = 0};
    bool has_ended = supervisor_pid > 0 &&
                     waitid(P_PID, (id_t)supervisor_pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
    if (has_ended && !task_has_ended(supervised)) {
        if (write(STDERR_FILENO, SENTENCE, sizeof SENTENCE - 1) < 0) _exit(ENV_GAVE_UP);
        _exit(ENV_GAVE_UP);
    }
    errno = before;
}

static void watch_supervisor(const struct task *task) {
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    supervised = task;
    sigaction(SIGCHLD, &action, NULL);
}

/* In the child. It stays in the client's process group: a fault that stops or kills a client means its lock, too. */
static void adapter_become(const struct adapter_launch *launch, const struct task *task, int input, int output,
                           pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(127);
    if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0) _exit(127);
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_ON_EXEC);
    signal(SIGPIPE, SIG_DFL);
    if (launch->supervisor) become_supervised(launch, task);
    else execl(launch->program, launch->program, (char *)NULL);
    fprintf(stderr, "%s: %s\n", launch->supervisor ? launch->supervisor : launch->program, strerror(errno));
    _exit(127);
}

struct adapter_session *adapter_session_open(const struct adapter_launch *launch, struct task *task) {
    int input[2], output[2];
    pid_t parent = getpid();
    if (pipe2(input, O_CLOEXEC) != 0) return NULL;
    if (pipe2(output, O_CLOEXEC) != 0) {
        close(input[0]);
        close(input[1]);
        return NULL;
    }
    signal(SIGPIPE, SIG_IGN); /* a program that reads no more causes EPIPE instead */
    if (launch->supervisor) task_announce(task), watch_supervisor(task);
    pid_t pid = fork();
    if (pid == 0) adapter_become(launch, task, input[0], output[1], parent);
    if (launch->supervisor && pid > 0) {
        supervisor_pid = pid;
        on_child(SIGCHLD); /* it may have ended before its number was known */
    }
    close(input[0]);
    close(output[1]);
    struct adapter_session *session = pid > 0 ? calloc(1, sizeof *session) : NULL;
    if (!session) {
        close(input[1]);
        close(output[0]);
        return NULL;
    }
    fcntl(input[1], F_SETFL, O_NONBLOCK);
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    fcntl(output[0], F_SETPIPE_SZ, PIPE_BYTES); /* in virtual time nobody reads while the program has its turn */
    session->pid = pid;
    session->to = input[1];
    session->from = output[0];
    return session;
}

/* Whether the program has ended, or ends within the limit; `reason` then says how. */
static bool await_end(struct adapter_session *session, int limit_ms) {
    int status;
    int64_t until_ns = hang_limit_deadline_ns(limit_ms);
    while (session->pid > 0 && waitpid(session->pid, &status, WNOHANG) == 0) {
        if (hang_limit_is_over(until_ns)) return false;
        poll(NULL, 0, POLL_MS);
    }
    if (session->pid == 0) return true;
    session->pid = 0;
    bool killed = WIFSIGNALED(status);
    snprintf(session->reason, sizeof session->reason, "it %s %d", killed ? "was ended by signal" : "ended with status",
             killed ? WTERMSIG(status) : WEXITSTATUS(status));
    return true;
}

void adapter_session_close(struct adapter_session *session) {
    if (!session) return;
    close(session->to);
    close(session->from);
    supervisor_pid = 0;
    if (session->pid > 0) {
        kill(session->pid, SIGKILL);
        waitpid(session->pid, NULL, 0);
    }
    free(session);
}

bool adapter_session_send(struct adapter_session *session, const char *line) {
    size_t length = strlen(line);
    char *whole = malloc(length + 1);
    if (!whole) abort();
    memcpy(whole, line, length);
    whole[length] = '\n';
    /* A pipe takes a short line as a whole, or nothing of it when it is full because the program does not read. */
    bool taken = write(session->to, whole, length + 1) == (ssize_t)(length + 1);
    free(whole);
    return taken;
}

static struct env_reply adapter_failed(const char *why) {
    return (struct env_reply){.kind = ENV_REPLY_ERROR, .text = why, .length = strlen(why)};
}

static struct env_reply closed(struct adapter_session *session) {
    return adapter_failed(await_end(session, END_LIMIT_MS) ? session->reason : "it closed its standard output");
}

/* No end of its output is seen while a process that it has started still has that open: so the process is asked for. */
static struct env_reply silent(struct adapter_session *session) {
    return await_end(session, 0) ? adapter_failed(session->reason) : (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
}

/* Drops the line that was returned last and moves up the rest. */
static char *adapter_line_end(struct adapter_session *session) {
    session->length -= session->consumed;
    memmove(session->received, session->received + session->consumed, session->length);
    session->received[session->length] = '\0';
    session->consumed = 0;
    return memchr(session->received, '\n', session->length);
}

struct env_reply adapter_session_receive(struct adapter_session *session, const struct live_wait *wait) {
    char *end;
    while (!(end = adapter_line_end(session))) {
        size_t room = ADAPTER_LINE_MOST - session->length;
        if (room == 0) return adapter_failed("it said more than 64 KiB without a line end");
        ssize_t got = read(session->from, session->received + session->length, room);
        if (got > 0) session->length += (size_t)got;
        else if (got == 0) return closed(session);
        else if (errno != EAGAIN && errno != EINTR) return adapter_failed(strerror(errno));
        else if (!live_wait_readable(wait, session->from)) return silent(session);
    }
    *end = '\0';
    session->consumed = (size_t)(end + 1 - session->received);
    return (struct env_reply){
        .kind = ENV_REPLY_STRING, .text = session->received, .length = (size_t)(end - session->received)};
}
