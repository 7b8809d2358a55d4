#include "faults/election.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/process_end.h"

enum { STATE_LIMIT_MS = 5000 };
_Static_assert(sizeof(struct election) <= FAULT_STATE, "fits the target's state");

static struct election *election_of(struct fault_target *target) {
    return (void *)target->state;
}

/* --- taking away --- */

/* The state letter in /proc, 'Z' when there is no such process. The name before it may hold blanks and parentheses. */
static char process_state(int pid) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file) return 'Z';
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    char *end = got ? strrchr(line, ')') : NULL;
    return end && end[1] == ' ' ? end[2] : 'Z';
}

static bool signal_and_wait(const struct fault_target *target, int number, const char *states,
                            struct fault_report *report) {
    if (target->pid <= 0 || kill(target->pid, number) < 0)
        return fault_fail(report, "kill(%d): %s", target->pid, target->pid <= 0 ? "no process" : strerror(errno));
    for (int64_t until_ms = real_ms() + STATE_LIMIT_MS; real_ms() < until_ms;) {
        if (strchr(states, process_state(target->pid))) return true;
        pause_ms(1);
    }
    return fault_fail(report, "process %d is still in state %c", target->pid, process_state(target->pid));
}

static bool how_option(const struct fault *fault, const struct fault_target *target, bool *kills,
                       struct fault_report *report) {
    const char *said = fault_text(fault, target, "how");
    *kills = strcmp(said, "kill") == 0;
    return *kills || strcmp(said, "pause") == 0 ||
           fault_fail(report, "%s: how=%.40s is neither kill nor pause", fault->name, said);
}

bool election_prepare(const struct fault *fault, struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    bool replicated;
    if (!replicated_option(fault, target, &replicated, report)) return false;
    if (!replication_find(&election->replication, target, false, report)) return false;
    election->ready = replicated || replication_cut(&election->replication, target, NULL, report);
    return election->ready;
}

bool election_begin(const struct fault *fault, struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    bool kills, replicated;
    if (!how_option(fault, target, &kills, report)) return false;
    if (!replicated_option(fault, target, &replicated, report)) return false;
    if (!election->ready && !election_prepare(fault, target, report)) return false;
    if (replicated && !replication_drain(&election->replication, target, report)) return false;
    election->lost = kills ? process_end(target->pid, report) : signal_and_wait(target, SIGSTOP, "T", report);
    if (election->lost) target->means->server_silent(target->means->conductor, target->server, true);
    return election->lost;
}

/* --- the next one --- */

static const struct fault_target *find_elected(struct fault_target *target) {
    struct election *election = election_of(target);
    for (int each = 0; each < election->replication.count; each++) {
        const struct fault_target *replica = taking_part(target, election->replication.replicas[each]);
        struct fault_report ignored;
        if (replica && role_is(replica->socket, "master", &ignored)) return replica;
    }
    return NULL;
}

bool election_follow(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    const struct fault_target *elected = NULL;
    for (int64_t until_ms = real_ms() + ELECTION_LIMIT_MS; !elected && real_ms() < until_ms;) {
        elected = find_elected(target);
        if (!elected) pause_ms(5);
    }
    if (!elected) return fault_fail(report, "no replica of %s became a master", target->name);
    election->elected = elected->server;
    target->means->replica_lost(elected->server);
    election->led = target->means->clients_lead(target->server, elected->server);
    return election->led || fault_fail(report, "no client is led to %s", target->name);
}

bool election_shows(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    const struct fault_target *elected = election->led ? taking_part(target, election->elected) : NULL;
    struct fault_report seen;
    if (!elected) return fault_fail(report, "nobody was elected");
    if (!role_is(elected->socket, "master", report)) return false;
    if (!replication_shows(&election->replication, target, elected->socket, &seen)) return *report = seen, false;
    snprintf(report->text, sizeof report->text, "%s was elected; %.160s", elected->name, seen.text);
    return true;
}

/* --- and back --- */

static bool bring_back(const struct fault *fault, struct fault_target *target, struct fault_report *report) {
    bool kills;
    if (!how_option(fault, target, &kills, report)) return false;
    if (!kills) return signal_and_wait(target, SIGCONT, "SRD", report);
    return target->means->server_restart(target->server) || fault_fail(report, "%s did not start again", target->name);
}

/* Whoever is still connected to what was the master looks where it is now, as after MOVED. */
static bool demoted(struct fault_target *target, struct fault_report *report) {
    struct fault_report ignored;
    struct answer answer;
    if (!role_await(target->socket, "slave", ELECTION_LIMIT_MS, report)) return false;
    ask(target->socket, &answer, &ignored, "CLIENT KILL TYPE normal");
    ask(target->socket, &answer, &ignored, "CLIENT KILL TYPE pubsub");
    return target->means->server_follow(target->server, election_of(target)->elected) ||
           fault_fail(report, "%s does not follow", target->name);
}

bool election_end(const struct fault *fault, struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    bool was_cut = election->replication.cut, well = true;
    if (election->lost) {
        well = bring_back(fault, target, report);
        if (well) target->means->server_silent(target->means->conductor, target->server, false);
    }
    replication_mend(&election->replication, target);
    if (well && election->led) well = demoted(target, report);
    else if (well && was_cut)
        for (int each = 0; each < election->replication.count; each++)
            well &= target->means->server_follow(election->replication.replicas[each], target->server);
    *election = (struct election){0};
    return well;
}
