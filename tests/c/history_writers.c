/* history_writers [--kill] PATH PROCESSES RECORDS: many processes append to one new history at once; the history is
 * then read back and compared with what they did.
 *
 * Each of PROCESSES writers appends RECORDS numbered records. Two more processes pass a token to and fro through pipes;
 * each appends after it has received the token and before it sends it: the history must have the order of the token.
 *
 * With --kill every writer also acknowledges each record through a pipe once it is appended, and is killed (SIGKILL)
 * after it has acknowledged RECORDS of them, in the middle of its work. What was acknowledged must be in the history;
 * each writer may leave one torn slot.
 *
 * Prints one JSON line. Exit status: 0 passed, 1 failed, 2 bad usage or a system call failed. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/scheduler/actor.h"

enum { PROCESSES_MAX = 256, PAIR = 2, ROUNDS_MAX = 20000, PIPE_BYTES = 65536 };

struct plan {
    const char *path;
    uint32_t processes;
    uint32_t records;
    uint32_t rounds; /* of the token */
    bool kill;
};

/* The records of one writer that were read back. */
struct seen {
    uint64_t count;
    uint32_t last_op;
};

struct findings {
    struct seen writers[PROCESSES_MAX];
    uint32_t acknowledged[PROCESSES_MAX];
    uint64_t torn, damaged, dropped, stamps_out_of_order;
    uint64_t out_of_order;  /* a writer's record at or before an earlier one of the same writer */
    uint64_t early_effects; /* a record of the token that does not stand right after its cause */
    uint64_t token_records, lost, survivors;
};

static struct shared_page real_page = {.time = HISTORY_TIME_REAL};

static void die(const char *what) {
    fprintf(stderr, "history_writers: %s: %s\n", what, strerror(errno));
    exit(2);
}

static struct history *open_or_die(const struct plan *plan) {
    struct history_error error;
    struct history *history = history_open(plan->path, &error);
    if (history) return history;
    fprintf(stderr, "history_writers: %s\n", error.text);
    exit(2);
}

/* --- writers --- */

/* Appends its numbered records; acknowledges through `ack_fd` unless that is -1. */
static void write_records(const struct plan *plan, uint32_t number, int ack_fd) {
    struct actor actor = {.history = open_or_die(plan), .page = &real_page, .id = number + 1};
    for (uint32_t op = 1; plan->kill || op <= plan->records; op++) {
        struct history_record record = {
            .kind = HISTORY_NOTE, .op = op, .value = (int64_t)op * 3, .extra = ~(int64_t)op};
        if (actor_append(&actor, record) == HISTORY_FULL) exit(1);
        if (ack_fd >= 0 && write(ack_fd, &op, sizeof op) != sizeof op) die("acknowledging");
    }
    history_close(actor.history);
}

/* One of the two: takes the token, adds one, appends, and passes it on, `count` times. */
static void pass_token(const struct plan *plan, uint32_t id, int in_fd, int out_fd, uint32_t count) {
    struct actor actor = {.history = open_or_die(plan), .page = &real_page, .id = id};
    for (uint32_t round = 0; round < count; round++) {
        int64_t token;
        if (read(in_fd, &token, sizeof token) != sizeof token) die("taking the token");
        token++;
        if (actor_append(&actor, (struct history_record){.kind = HISTORY_NOTE, .value = token}) == HISTORY_FULL)
            exit(1);
        if (write(out_fd, &token, sizeof token) != sizeof token) die("passing the token");
    }
    history_close(actor.history);
}

/* Like fork, for a child that must not outlive its parent. */
static pid_t fork_bound(void) {
    pid_t parent = getpid(), child = fork();
    if (child < 0) die("fork");
    if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) exit(2);
    return child;
}

static void start_pair(const struct plan *plan, pid_t children[PAIR]) {
    int there[2], back[2];
    int64_t token = 0;
    if (pipe(there) < 0 || pipe(back) < 0) die("pipe");
    if (write(there[1], &token, sizeof token) != sizeof token) die("the first token");
    for (uint32_t each = 0; each < PAIR; each++) {
        children[each] = fork_bound();
        if (children[each] != 0) continue;
        pass_token(plan, plan->processes + 1 + each, each ? back[0] : there[0], each ? there[1] : back[1],
                   plan->rounds);
        exit(0);
    }
    for (int end = 0; end < 2; end++) close(there[end]), close(back[end]);
}

/* The descriptor on which a writer's acknowledgements arrive, -1 without --kill. */
static int start_writer(const struct plan *plan, uint32_t number, pid_t *child) {
    int ack[2] = {-1, -1};
    if (plan->kill && pipe(ack) < 0) die("pipe");
    *child = fork_bound();
    if (*child == 0) {
        write_records(plan, number, ack[1]);
        exit(0);
    }
    if (ack[1] >= 0) close(ack[1]);
    return ack[0];
}

/* Reads acknowledgements up to the one numbered `enough`, 0: to the end. Returns the last. */
static uint32_t read_acknowledgements(int fd, uint32_t enough) {
    uint32_t ops[256], last = 0;
    ssize_t got;
    while ((enough == 0 || last < enough) && (got = read(fd, ops, sizeof ops)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 || (size_t)got % sizeof ops[0]) die("reading acknowledgements");
        last = ops[(size_t)got / sizeof ops[0] - 1];
    }
    return last;
}

static void kill_writers(const struct plan *plan, const pid_t *children, const int *acks, struct findings *findings) {
    for (uint32_t each = 0; each < plan->processes; each++) {
        uint32_t before = read_acknowledgements(acks[each], plan->records);
        kill(children[each], SIGKILL);
        uint32_t after = read_acknowledgements(acks[each], 0);
        findings->acknowledged[each] = after > before ? after : before;
        close(acks[each]);
    }
}

/* Waits for all. A writer that was to be killed must have ended by SIGKILL, every other process with status 0. */
static void await_children(const struct plan *plan, const pid_t *children, struct findings *findings) {
    for (uint32_t each = 0; each < plan->processes + PAIR; each++) {
        int status = 0;
        if (waitpid(children[each], &status, 0) < 0) die("waitpid");
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        bool meant = plan->kill && each < plan->processes;
        if (meant ? !killed : status != 0) findings->survivors++;
    }
}

static void play(const struct plan *plan, struct findings *findings) {
    pid_t children[PROCESSES_MAX + PAIR];
    int acks[PROCESSES_MAX];
    for (uint32_t each = 0; each < plan->processes; each++) acks[each] = start_writer(plan, each, &children[each]);
    start_pair(plan, children + plan->processes);
    if (plan->kill) {
        kill_writers(plan, children, acks, findings);
    } else {
        for (uint32_t each = 0; each < plan->processes; each++) findings->acknowledged[each] = plan->records;
    }
    await_children(plan, children, findings);
}

/* --- reading back --- */

static void take(const struct plan *plan, const struct history_record *record, struct findings *findings) {
    if (record->actor > plan->processes) { /* the token's */
        if (record->value != (int64_t)findings->token_records + 1) findings->early_effects++;
        findings->token_records++;
    } else if (record->actor > 0) {
        struct seen *seen = &findings->writers[record->actor - 1];
        if (record->op != seen->last_op + 1) findings->out_of_order++;
        if (record->value != (int64_t)record->op * 3 || record->extra != ~(int64_t)record->op) findings->damaged++;
        seen->last_op = record->op;
        seen->count++;
    }
}

static void read_back(const struct plan *plan, struct findings *findings) {
    struct history_error error;
    struct history_reader *reader = history_reader_open(plan->path, &error);
    struct history_record record;
    int64_t newest_ns = 0;
    if (!reader) die(error.text);
    for (enum history_state state; (state = history_reader_next(reader, false, &record)) != HISTORY_END;) {
        findings->torn += state == HISTORY_TORN;
        findings->damaged += state == HISTORY_DAMAGED;
        if (state != HISTORY_RECORD) continue;
        take(plan, &record, findings);
        findings->stamps_out_of_order += record.mono_ns < newest_ns;
        if (record.mono_ns > newest_ns) newest_ns = record.mono_ns;
    }
    findings->dropped = history_reader_dropped(reader);
    for (uint32_t each = 0; each < plan->processes; each++)
        if (findings->writers[each].count < findings->acknowledged[each])
            findings->lost += findings->acknowledged[each] - findings->writers[each].count;
    history_reader_close(reader);
}

static bool report(const struct plan *plan, const struct findings *findings) {
    uint64_t acknowledged = 0, written = 0, torn_allowed = plan->kill ? plan->processes : 0;
    for (uint32_t each = 0; each < plan->processes; each++) {
        acknowledged += findings->acknowledged[each];
        written += findings->writers[each].count;
    }
    bool token_whole = findings->token_records == (uint64_t)PAIR * plan->rounds;
    bool good = findings->lost + findings->damaged + findings->dropped + findings->out_of_order +
                        findings->early_effects + findings->survivors ==
                    0 &&
                findings->torn <= torn_allowed && token_whole && (plan->kill || written == acknowledged);
    printf("{\"ok\": %s, \"acknowledged\": %" PRIu64 ", \"written\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"torn\": %" PRIu64 ", \"damaged\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"out_of_order\": %" PRIu64
           ", \"token_records\": %" PRIu64 ", \"early_effects\": %" PRIu64 ", \"survivors\": %" PRIu64
           ", \"stamps_out_of_order\": %" PRIu64 "}\n",
           good ? "true" : "false", acknowledged, written, findings->lost, findings->torn, findings->damaged,
           findings->dropped, findings->out_of_order, findings->token_records, findings->early_effects,
           findings->survivors, findings->stamps_out_of_order);
    return good;
}

static bool number(const char *text, uint32_t most, uint32_t *value) {
    char *end;
    unsigned long said = strtoul(text, &end, 10);
    *value = (uint32_t)said;
    return end != text && *end == '\0' && said > 0 && said <= most;
}

int main(int argc, char **argv) {
    struct plan plan = {.kill = argc > 1 && strcmp(argv[1], "--kill") == 0};
    char **words = argv + (plan.kill ? 2 : 1);
    bool understood = argc - (plan.kill ? 2 : 1) == 3 && number(words[1], PROCESSES_MAX, &plan.processes) &&
                      number(words[2], 100000000, &plan.records);
    if (!understood) return fprintf(stderr, "usage: history_writers [--kill] PATH PROCESSES RECORDS\n"), 2;
    plan.path = words[0];
    plan.rounds = plan.records < ROUNDS_MAX ? plan.records : ROUNDS_MAX;
    /* A killed writer may be ahead of its acknowledgements by what a pipe holds and by what one read takes. */
    uint64_t ahead = plan.kill ? 2 * PIPE_BYTES / sizeof(uint32_t) : 0;
    struct history_settings settings = {.time = HISTORY_TIME_REAL,
                                        .capacity = plan.processes * (plan.records + ahead) + PAIR * plan.rounds};
    struct history_error error;
    if (!history_create(plan.path, &settings, &error)) return fprintf(stderr, "%s\n", error.text), 2;
    static struct findings findings;
    play(&plan, &findings);
    read_back(&plan, &findings);
    return report(&plan, &findings) ? 0 : 1;
}
