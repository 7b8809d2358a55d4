/* Runs a program in virtual time. In a trial it is the second task of the client that hosts the program (--page); alone
 * (--alone) it moves the clock to the next deadline whenever the program is quiet and nothing has come for it.
 *
 * Exit status: the program's, 128 and the signal's number if one has ended it; 2 for bad arguments; 75 when the program
 * cannot be supervised any further. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/task.h"
#include "harness/supervisor/turns.h"

enum { USAGE = 2, UNSUPERVISED = 75, ENDED_BY_SIGNAL = 128, NEWS_POLL_MS = 20, TRACE_PATH = 4096 };

struct supervisor_arguments {
    const char *page;
    int64_t task, seed, turn_fd, yield_fd;
    const char *trace;
    bool alone, counts;
    char **words;
};

static bool supervisor_number(const char *text, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool bad_usage(void) {
    fprintf(stderr,
            "supervisor: usage: supervisor --alone [--seed N] [--counts] [--trace FILE] PROGRAM [ARGUMENT]...\n");
    return false;
}

static bool parse_arguments(int argc, char **argv, struct supervisor_arguments *arguments) {
    static const struct option OPTIONS[] = {{"page", required_argument, NULL, 'p'},
                                            {"task", required_argument, NULL, 't'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"turn-fd", required_argument, NULL, 'T'},
                                            {"yield-fd", required_argument, NULL, 'Y'},
                                            {"alone", no_argument, NULL, 'a'},
                                            {"counts", no_argument, NULL, 'c'},
                                            {"trace", required_argument, NULL, 'r'},
                                            {0}};
    bool good = true;
    for (int option; good && (option = getopt_long(argc, argv, "+", OPTIONS, NULL)) != -1;) {
        switch (option) {
        case 'p': arguments->page = optarg; break;
        case 't': good = supervisor_number(optarg, &arguments->task); break;
        case 's': good = supervisor_number(optarg, &arguments->seed); break;
        case 'T': good = supervisor_number(optarg, &arguments->turn_fd); break;
        case 'Y': good = supervisor_number(optarg, &arguments->yield_fd); break;
        case 'r': arguments->trace = optarg; break;
        case 'a': arguments->alone = true; break;
        case 'c': arguments->counts = true; break;
        default: return bad_usage();
        }
        if (!good) fprintf(stderr, "supervisor: not a usable value: %s\n", optarg);
    }
    arguments->words = argv + optind;
    bool in_trial = arguments->page && arguments->task > 0 && arguments->task < SHARED_PAGE_TASKS;
    if (good && optind < argc && (arguments->alone ? !arguments->page : in_trial)) return true;
    return bad_usage();
}

/* --- in a trial --- */

static bool has_news(void *holder) {
    return turns_have_news(holder);
}

static bool no_news(void *holder) {
    (void)holder;
    return false;
}

/* LOCKSTORM_CALLS=PREFIX: the calls of each program of a trial go to a file PREFIX.TASK. */
static FILE *trace_open(const struct supervisor_arguments *arguments) {
    char path[TRACE_PATH];
    const char *prefix = getenv("LOCKSTORM_CALLS");
    if (arguments->trace) snprintf(path, sizeof path, "%s", arguments->trace);
    else if (prefix && !arguments->alone) snprintf(path, sizeof path, "%s.%" PRId64, prefix, arguments->task);
    else return NULL;
    FILE *trace = fopen(path, "we");
    if (trace) setvbuf(trace, NULL, _IOLBF, 0);
    else fprintf(stderr, "supervisor: %s: %s\n", path, strerror(errno));
    return trace;
}

/* All that the program sent in this turn may be on its way. */
static void count_sent(const struct task *task) {
    atomic_fetch_add_explicit(&task->page->traffic, 1, memory_order_release);
    atomic_fetch_add_explicit(&task->page->unawaited, 1, memory_order_release);
}

/* The pipes to and from the client are the program's: when it ends, the client sees their end. */
static void leave_pipes(void) {
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    if (nothing > STDERR_FILENO) close(nothing);
}

/* The checkpoint at which the program is held: what has come for it is in its sockets, and it has not seen it. */
static const char AFTER_NEWS[] = "after-news";

/* A program may ask a server again and again, without a pause, until something changes there (Redisson waits for what
 * is left of a lease, which may be 0 ms). After TURNS_MOST turns at the same time it is busy: from then on a turn takes
 * a millisecond, later ten, until it waits. */
enum { TURNS_MOST = 200, TURNS_LONG = 1000, TURN_NS = CLOCK_NS_PER_MS, LONG_TURN_NS = 10 * CLOCK_NS_PER_MS };

struct pace {
    int64_t now_ns;  /* of the trial's clock at its last turn */
    int turns, busy; /* number of turns at this time, and since it is busy; 0: it is not */
};

static int64_t busy_turn_ns(struct pace *pace, int64_t now_ns) {
    pace->turns = now_ns == pace->now_ns ? pace->turns + 1 : 0;
    pace->now_ns = now_ns;
    if (pace->busy == 0 && pace->turns < TURNS_MOST) return 0;
    return ++pace->busy < TURNS_LONG ? TURN_NS : LONG_TURN_NS;
}

/* The client's worker has the slot before the program's. */
static void run_in_trial(struct supervisor *supervisor, struct task *task) {
    struct pace pace = {.now_ns = -1};
    while (turns_run(supervisor)) {
        count_sent(task);
        int64_t now_ns = atomic_load(&task->page->mono_ns), takes_ns = busy_turn_ns(&pace, now_ns);
        int64_t deadline_ns = program_clock_trial_ns(&supervisor->clock, turns_deadline_ns(supervisor));
        if (takes_ns > 0) task_await(task, no_news, supervisor, now_ns + takes_ns);
        if (takes_ns == 0 || (deadline_ns > now_ns + takes_ns && !turns_have_news(supervisor))) {
            pace.busy = 0;
            task_await(task, has_news, supervisor, deadline_ns);
        }
        if (turns_have_news(supervisor)) task_checkpoint(task, AFTER_NEWS);
    }
    count_sent(task);
}

static bool supervise_in_trial(struct supervisor *supervisor, const struct supervisor_arguments *arguments) {
    struct history_error error;
    struct shared_page *page = shared_page_open(arguments->page, &error);
    if (!page) {
        fprintf(stderr, "supervisor: %s\n", error.text);
        return false;
    }
    struct task task = {.page = page,
                        .place = &page->tasks[arguments->task],
                        .turn_fd = (int)arguments->turn_fd,
                        .yield_fd = (int)arguments->yield_fd};
    fcntl(task.turn_fd, F_SETFD, FD_CLOEXEC);
    fcntl(task.yield_fd, F_SETFD, FD_CLOEXEC);
    task_begin(&task);
    supervisor->ends_with_root = true;
    program_clock_begin(&supervisor->clock, page, &page->tasks[arguments->task - 1]);
    if (turns_begin(supervisor, arguments->words)) {
        leave_pipes();
        run_in_trial(supervisor, &task);
    }
    turns_end(supervisor);
    if (supervisor->reason[0]) fprintf(stderr, "supervisor: %s\n", supervisor->reason);
    struct task worker = {
        .page = page, .place = &page->tasks[arguments->task - 1], .turn_fd = -1, .yield_fd = task.yield_fd};
    task_end(&task, &worker);
    shared_page_close(page);
    return true;
}

/* --- alone --- */

/* The program's peers live by the machine's clock. */
static bool await_news(const struct supervisor *supervisor, bool for_ever) {
    while (!turns_have_news(supervisor)) {
        if (!for_ever) return false;
        poll(NULL, 0, NEWS_POLL_MS);
    }
    return true;
}

static void supervise_alone(struct supervisor *supervisor, const struct supervisor_arguments *arguments) {
    program_clock_begin(&supervisor->clock, NULL, NULL);
    if (turns_begin(supervisor, arguments->words)) {
        while (turns_run(supervisor)) {
            int64_t deadline_ns = turns_deadline_ns(supervisor);
            if (await_news(supervisor, deadline_ns == INT64_MAX)) continue;
            program_clock_move(&supervisor->clock, deadline_ns);
            supervisor_publish_clock(supervisor);
        }
    }
    turns_end(supervisor);
    if (supervisor->reason[0]) fprintf(stderr, "supervisor: %s\n", supervisor->reason);
    if (arguments->counts)
        fprintf(stderr, "supervisor: %llu calls, %llu spins\n", (unsigned long long)supervisor->calls,
                (unsigned long long)supervisor->spins);
}

/* The client sees the end that the program had. */
static void end_by(int number) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    signal(number, SIG_DFL);
    raise(number);
}

static struct supervisor supervisor;

/* Its program ends first: without a supervisor its calls would fail, which it must not see. */
static void on_end(int number) {
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        pid_t pid = supervisor.program.processes[each].pid;
        if (pid > 0) kill(pid, SIGKILL);
    }
    if (supervisor.root > 0) kill(supervisor.root, SIGKILL);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_for_end(void) {
    static const int ENDS[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t each = 0; each < sizeof ENDS / sizeof ENDS[0]; each++)
        if (signal(ENDS[each], on_end) == SIG_IGN) signal(ENDS[each], SIG_IGN); /* as nohup asks for */
}

int main(int argc, char **argv) {
    struct supervisor_arguments arguments = {.task = -1};
    if (!parse_arguments(argc, argv, &arguments)) return USAGE;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    watch_for_end();
    supervisor.trace = trace_open(&arguments);
    if (arguments.trace && !supervisor.trace) return USAGE;
    supervisor.random = random_split((uint64_t)arguments.seed, 0);
    if (arguments.alone) supervise_alone(&supervisor, &arguments);
    else if (!supervise_in_trial(&supervisor, &arguments)) return USAGE;
    if (supervisor.reason[0]) return UNSUPERVISED;
    if (!arguments.alone && WIFSIGNALED(supervisor.status)) end_by(WTERMSIG(supervisor.status));
    return WIFSIGNALED(supervisor.status) ? ENDED_BY_SIGNAL + WTERMSIG(supervisor.status)
                                          : WEXITSTATUS(supervisor.status);
}
