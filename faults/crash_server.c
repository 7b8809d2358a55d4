/* crash-server: the server's process is killed, and started again when the fault is healed.
 *
 * What it remembers is decided in between: its append-only file is left alone, shortened, or thrown away with all that
 * is in its directory. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>

#include "faults/append_only.h"
#include "faults/ask.h"
#include "faults/postgres.h"
#include "faults/postgres_crash.h"
#include "faults/process.h"
#include "faults/process_end.h"
#include "faults/replicas.h"

extern const struct fault FAULT_CRASH_SERVER;

enum {
    LOST_MOST = 1000000,
    WRITE_LIMIT_MS = 1000,
    CLUSTER_LIMIT_MS = 10000,
    LOOK_EVERY_US = 2000,
    DIRECTORIES_OPEN = 8
};
static const char LAST[] = "lockstorm:last-write", LEFT[] = "lockstorm:end-of-what-is-left";

static const struct fault_word OPTIONS[] = {
    {"data", "none", "what it remembers: kept (its append-only file), tail (that without the last writes) or none"},
    {"lost", "1", "of data=tail: how many of the last writes are lost; a transaction or a script counts as one"},
    {0},
};

enum data { DATA_KEPT, DATA_TAIL, DATA_NONE };

struct state {
    bool killed;
    int replicas;
    char run_id[48];
};

static struct state *state_of(struct fault_target *target) {
    return (struct state *)(void *)target->state;
}

static bool data_option(const struct fault_target *target, enum data *data, struct fault_report *report) {
    static const char *const names[] = {[DATA_KEPT] = "kept", [DATA_TAIL] = "tail", [DATA_NONE] = "none"};
    const char *name = fault_text(&FAULT_CRASH_SERVER, target, "data");
    for (int each = DATA_KEPT; each <= DATA_NONE; each++) {
        *data = (enum data)each;
        if (strcmp(names[each], name) == 0) return true;
    }
    return fault_fail(report, "data=%.40s: there are kept, tail and none", name);
}

static bool run_id_read(const struct fault_target *target, char *run_id, size_t size, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(target->socket, &answer, report, "INFO server")) return false;
    return answer_line(&answer, "run_id", run_id, size) || fault_fail(report, "%s says no run_id", target->name);
}

/* A replica would come back as a master: whose it was, only its memory knew. A sentinel has no such role. */
static bool is_master(const struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    char role[16] = "";
    if (!ask_good(target->socket, &answer, report, "INFO replication")) return false;
    if (answer_line(&answer, "role", role, sizeof role) && strcmp(role, "master") == 0) return true;
    return fault_fail(report, "%s is no master, and this fault is for masters", target->name);
}

static bool writes_to_disk(const struct fault_target *target, struct fault_report *report) {
    char appends[8];
    if (!ask_setting(target->socket, "appendonly", appends, sizeof appends, report)) return false;
    return strcmp(appends, "yes") == 0 ||
           fault_fail(report, "%s has no append-only file: the trial's persistence is none", target->name);
}

/* --- its end --- */

/* All but what a node knows of its cluster, which is no data. */
static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status, (void)kind;
    return place->level == 0 || strcmp(path + place->base, "nodes.conf") == 0 ? 0 : remove(path);
}

static bool forget(const struct fault_target *target, enum data data, int64_t lost, struct fault_report *report) {
    char key[PROBE_KEY];
    probe_key(target, "crash-server", key);
    if (data == DATA_KEPT) return true;
    if (data == DATA_TAIL)
        return append_only_cut(target->directory, &(struct append_only_cut){key, LAST, LEFT, (long)lost}, report);
    return nftw(target->directory, remove_entry, DIRECTORIES_OPEN, FTW_DEPTH | FTW_PHYS) == 0 ||
           fault_fail(report, "%.150s: %.60s", target->directory, strerror(errno));
}

static bool write_last(const struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    char key[PROBE_KEY];
    probe_key(target, "crash-server", key);
    if (!ask_within(target->socket, WRITE_LIMIT_MS, &answer, report, "SET %s %s", key, LAST)) return false;
    return !answer.error || fault_fail(report, "%s takes no writes: %.150s", target->name, answer.text);
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    enum data data;
    int64_t lost;
    if (!data_option(target, &data, report) ||
        !fault_number(&FAULT_CRASH_SERVER, target, "lost", 1, LOST_MOST, &lost, report))
        return false;
    if (is_postgres(target) && data != DATA_KEPT)
        return fault_fail(report, "%s keeps what was committed: data=kept", target->name);
    if (is_postgres(target)) return postgres_crash_inject(target, report);
    if (!target->means->server_restart) return fault_fail(report, "nobody would start %s again", target->name);
    if (!is_master(target, report) || (data != DATA_NONE && !writes_to_disk(target, report))) return false;
    if (!run_id_read(target, state->run_id, sizeof state->run_id, report)) return false;
    state->replicas = replicas_connected(target->socket, report);
    if (!write_last(target, report)) return false;
    if (state->replicas > 0) replicas_leave(target);
    target->means->server_silent(target->means->conductor, target->server, true);
    state->killed = true;
    if (!process_end(target->pid, report) || !forget(target, data, lost, report)) return false;
    return target->means->settle(target->means->conductor) || fault_fail(report, "not every server answers");
}

/* --- and its return --- */

/* A node of a cluster answers nobody's questions before it has heard of the others. */
static bool cluster_await(const struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    char state[16];
    for (long waited_us = 0; waited_us < CLUSTER_LIMIT_MS * 1000L; waited_us += LOOK_EVERY_US) {
        if (!ask(target->socket, &answer, report, "CLUSTER INFO")) return false;
        if (!answer_line(&answer, "cluster_state", state, sizeof state) || strcmp(state, "ok") == 0) return true;
        process_nap_us(LOOK_EVERY_US);
    }
    return fault_fail(report, "%s does not find its cluster again", target->name);
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    if (is_postgres(target)) return postgres_crash_heal(target, report);
    if (!state->killed) return true;
    if (!target->means->server_restart(target->server))
        return fault_fail(report, "%s did not start again", target->name);
    state->killed = false;
    target->means->server_silent(target->means->conductor, target->server, false);
    if (!cluster_await(target, report)) return false;
    return state->replicas == 0 || replicas_return(target, state->replicas, report);
}

/* It is another process, and it remembers what it should; then the key goes. */
static bool prove(struct fault_target *target, struct fault_report *report) {
    char run_id[48];
    struct answer found, removed;
    enum data data;
    char key[PROBE_KEY];
    if (is_postgres(target)) return postgres_crash_prove(target, report);
    probe_key(target, "crash-server", key);
    if (!data_option(target, &data, report) || !run_id_read(target, run_id, sizeof run_id, report)) return false;
    if (!ask_good(target->socket, &found, report, "GET %s", key) ||
        !ask_good(target->socket, &removed, report, "DEL %s", key))
        return false;
    bool another = strcmp(run_id, state_of(target)->run_id) != 0;
    snprintf(report->text, sizeof report->text, "run_id %.8s, before %.8s; what was written last is %.60s", run_id,
             state_of(target)->run_id, found.missing ? "lost" : found.text);
    if (data == DATA_NONE) return another && found.missing;
    return another && strcmp(found.text, data == DATA_KEPT ? LAST : LEFT) == 0;
}

const struct fault FAULT_CRASH_SERVER = {
    .name = "crash-server",
    .summary = "kill a server (SIGKILL) and start it again, with its data, without the last writes or without any",
    .proof = "after the restart: INFO's run_id is another, and a key written right before the crash is there, or lost",
    .explanation =
        "The process is killed; healing starts it again at the same place, so the time between the two is the delay of\n"
        "the restart. data=kept: it reads its append-only file (the trial's persistence must be aof). data=tail: the last\n"
        "writes of that file are cut off, as if they had not reached the disk. data=none: it begins empty, and so will\n"
        "its replicas. Connections break, scripts and subscriptions are gone. kill -9 is no power failure: what was\n"
        "handed to the kernel survives it, so with any append-only file the lock would; that is why a loss is made here\n"
        "by hand. PostgreSQL can only keep its data, and goes through its log; every session has ended, and with it what\n"
        "sessions and transactions had locked. Not modelled: a replica's crash, a torn file.",
    .source =
        "redis.io, Distributed Locks, \"Performance, crash recovery and fsync\"; Kleppmann 2016 (delayed restarts)",
    .target = "server",
    .options = OPTIONS,
    .moment = FAULT_AFTER_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
