/* linearizable_simulated MODEL HISTORIES SEED: the linearizable checker on histories whose verdict is known from
 * how they are made; for the locks that have an owner.
 *
 * A lock is simulated: what it does, one operation after the other, is an order that explains the history, so
 * *violated* is a mistake. Processes call and return around that, and operations of unknown outcome are added where the
 * lock needs one to go on, and hardly any others: to end a hold, or to begin one that a renewal or release finds. So
 * there are as few of them, and of a fenced mutex as few tokens between those that are known, as the rest needs, and
 * a checker that uses up one too many, or drops the configuration that has it left, finds no order. The histories of
 * linearizable_oracle.c are short, since all orders are tried; random ones are hardly ever tight and linearizable.
 *
 * Then something impossible is added. It is known what it is, and at which return the history becomes
 * impossible; that must be the shortest prefix that the checker names:
 *
 *   - a grant has the token of another one, or a smaller one than was answered before it was called;
 *   - a process that never asked for the lock renews or releases it;
 *   - two processes that have no operation of unknown outcome hold the lock at once; with leases, the first one is
 *     found to hold it when the second one has been granted it;
 *   - a process releases once more than it acquired;
 *   - a renewal or release needs a token between two that follow each other.
 *
 * What this does not show: histories that are impossible for another reason, and a violation that the checker
 * overlooks there. That is what linearizable_oracle.c is for.
 *
 * Prints one line: how many had more than one configuration. Exit status: 0; 1 a wrong verdict, and the history is
 * printed; 2 bad usage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/linearizability/linearizable.h"
#include "harness/scheduler/random.h"

enum {
    PROCESSES = 5, /* of the simulation */
    ONE = PROCESSES,
    OTHER, /* that only do what is impossible, and what leads to it */
    ALL_PROCESSES,
    FIRM = 18,
    STRAYS = 24,
    OPERATIONS = FIRM + STRAYS + 10,
    EARLY = 2 * STRAYS, /* positions before all others, for strays */
    STEPS = 200,
    POSITIONS = EARLY + 4 * OPERATIONS
};

enum stage { IDLE, CALLED, HAPPENED };

struct simulation {
    struct random random;
    enum model model;
    bool leases;
    struct operation list[OPERATIONS];
    bool happened[OPERATIONS];
    uint32_t count, clock, firm, strays;
    bool taken[POSITIONS];
    enum stage stages[PROCESSES];
    uint32_t under_way[PROCESSES];
    uint32_t owner, depth; /* of the lock; depth 0: nobody has it */
    int64_t token;
    /* How this history is; in eighths, or as said. */
    uint32_t processes, most_firm, slack, freeing, answering, late, doubt, acquiring, idling;
};

static uint32_t below(struct simulation *it, uint32_t limit) {
    return (uint32_t)random_below(&it->random, limit);
}

static bool perhaps(struct simulation *it, uint32_t eighths) {
    return below(it, 8) < eighths;
}

/* --- operations --- */

static uint32_t call(struct simulation *it, uint32_t process, enum operation_kind kind, uint32_t position) {
    it->list[it->count] = (struct operation){.value = OPERATION_NIL,
                                             .from = OPERATION_NIL,
                                             .call = position,
                                             .called_at = position,
                                             .end = OPERATION_OPEN,
                                             .process = process,
                                             .kind = (uint8_t)kind,
                                             .outcome = OUTCOME_UNKNOWN};
    it->happened[it->count] = false;
    it->taken[position] = true;
    return it->count++;
}

static uint32_t next_position(struct simulation *it) {
    it->clock += 2;
    return it->clock - 1;
}

/* Has the process an operation under way there that is not of unknown outcome? */
static bool is_busy(const struct simulation *it, uint32_t process, uint32_t position) {
    for (uint32_t each = 0; each < it->count; each++) {
        const struct operation *operation = &it->list[each];
        bool open = process < PROCESSES && it->stages[process] != IDLE && it->under_way[process] == each;
        if (operation->process != process || operation->call > position) continue;
        if (open || (operation->outcome == OUTCOME_OK && operation->end > position)) return true;
    }
    return false;
}

/* A position at which a stray may have been called: mostly before everything. Events of others are at odd ones. */
static uint32_t stray_position(struct simulation *it, uint32_t process) {
    uint32_t late = EARLY + 2 + 2 * below(it, (it->clock - EARLY) / 2);
    bool can_be_late = late < it->clock && !it->taken[late] && !is_busy(it, process, late);
    return can_be_late && perhaps(it, it->late) ? late : 2 * it->strays + 1;
}

/* An operation of unknown outcome happens now: one whose caller gave up, or one more. False: there may be no more. */
static bool stray(struct simulation *it, uint32_t process, enum operation_kind kind) {
    bool more = it->strays < STRAYS;
    for (uint32_t each = 0; each < it->count && (!more || perhaps(it, 4)); each++) {
        const struct operation *operation = &it->list[each];
        bool open = process < PROCESSES && it->stages[process] != IDLE && it->under_way[process] == each;
        if (open || it->happened[each] || operation->process != process || operation->kind != kind) continue;
        it->happened[each] = true;
        return true;
    }
    if (!more) return false;
    uint32_t index = call(it, process, kind, stray_position(it, process));
    it->happened[index] = true;
    it->strays++;
    return true;
}

/* --- the lock --- */

/* The hold of the process begins, or is one deeper. */
static void begin_hold(struct simulation *it, uint32_t process, int64_t token) {
    it->depth = it->depth && it->owner == process ? it->depth + 1 : 1;
    it->owner = process;
    it->token = token;
}

/* A hold may end by itself when no grant of it is still to be answered. */
static bool may_lapse(const struct simulation *it) {
    bool unanswered = it->owner < PROCESSES && it->stages[it->owner] == HAPPENED &&
                      it->list[it->under_way[it->owner]].kind == OPERATION_ACQUIRE;
    return it->leases && !unanswered;
}

/* Nobody holds the lock now. False: that would take too many strays. */
static bool make_free(struct simulation *it) {
    if (may_lapse(it)) it->depth = 0;
    for (; it->depth > 0; it->depth--)
        if (!stray(it, it->owner, OPERATION_RELEASE)) return false;
    return true;
}

static bool is_held_by(const struct simulation *it, uint32_t process) {
    return it->depth > 0 && it->owner == process;
}

/* The operation that the process has under way happens, if the lock can be made to allow it. */
static void happen(struct simulation *it, uint32_t process) {
    uint32_t index = it->under_way[process];
    enum operation_kind kind = (enum operation_kind)it->list[index].kind;
    bool held = is_held_by(it, process), acquires = kind == OPERATION_ACQUIRE;
    bool again = held && acquires && it->model == MODEL_REENTRANT_MUTEX;
    if (acquires ? !again : !held) {
        if (it->depth && !may_lapse(it) && !perhaps(it, it->freeing)) return;
        if (!make_free(it)) return;
    }
    if (!acquires && !held) {
        if (!stray(it, process, OPERATION_ACQUIRE)) return;
        begin_hold(it, process, it->token + 1);
    }
    if (acquires) begin_hold(it, process, it->token + 1 + perhaps(it, it->slack));
    if (acquires && it->model == MODEL_FENCED_MUTEX) it->list[index].value = it->token;
    if (kind == OPERATION_RELEASE) it->depth--;
    it->happened[index] = true;
    it->stages[process] = HAPPENED;
}

/* --- a history --- */

static void begin_operation(struct simulation *it, uint32_t process) {
    enum operation_kind proof = below(it, 2) ? OPERATION_RENEW : OPERATION_RELEASE;
    enum operation_kind kind = below(it, 4) < it->acquiring ? OPERATION_ACQUIRE : proof;
    if (is_held_by(it, process) && kind == OPERATION_ACQUIRE && below(it, 3)) kind = proof;
    it->under_way[process] = call(it, process, kind, next_position(it));
    it->stages[process] = CALLED;
    it->firm++;
}

/* Something that nobody needs yet: a hold begins, is deeper or ends. */
static void do_more(struct simulation *it, uint32_t process) {
    bool again = is_held_by(it, process) && it->model == MODEL_REENTRANT_MUTEX;
    if (it->depth && !again) (void)make_free(it);
    else if (stray(it, process, OPERATION_ACQUIRE)) begin_hold(it, process, it->token + 1);
}

/* Its answer arrives, or its caller gives up. */
static void end_operation(struct simulation *it, uint32_t process, bool answered) {
    struct operation *operation = &it->list[it->under_way[process]];
    it->stages[process] = IDLE;
    if (!answered) return;
    operation->end = operation->returned_at = next_position(it);
    operation->outcome = OUTCOME_OK;
}

static void make(struct simulation *it) {
    memset(it->taken, 0, sizeof it->taken);
    memset(it->stages, 0, sizeof it->stages);
    it->count = it->firm = it->strays = it->depth = 0;
    it->clock = EARLY;
    it->token = 10;
    it->leases = below(it, 2);
    it->processes = 2 + below(it, PROCESSES - 1);
    it->most_firm = 4 + below(it, FIRM - 3);
    it->slack = below(it, 4);
    it->freeing = below(it, 5);
    it->answering = 2 + 2 * below(it, 4);
    it->acquiring = 1 + below(it, 3);
    bool tight = below(it, 2); /* whatever is not needed makes room */
    it->late = tight ? 0 : 2;
    it->doubt = tight ? 0 : below(it, 3);
    it->idling = tight ? 0 : below(it, 8);
    for (int steps = 0; steps < STEPS; steps++) {
        uint32_t process = below(it, it->processes);
        if (it->stages[process] == IDLE && below(it, 64) < it->idling) do_more(it, process);
        else if (it->stages[process] == IDLE && it->firm < it->most_firm) begin_operation(it, process);
        else if (it->stages[process] == CALLED && below(it, 32) < it->doubt) end_operation(it, process, false);
        else if (it->stages[process] == CALLED) happen(it, process);
        else if (it->stages[process] == HAPPENED && perhaps(it, it->answering))
            end_operation(it, process, below(it, 16) >= it->doubt);
    }
}

/* --- what is impossible: each gives the position at which the history becomes so; 0: not in this history --- */

static uint32_t some_grant(struct simulation *it) {
    uint32_t first = below(it, it->count);
    for (uint32_t each = 0; each < it->count; each++) {
        uint32_t index = (first + each) % it->count;
        if (it->list[index].kind == OPERATION_ACQUIRE && it->list[index].outcome == OUTCOME_OK) return index;
    }
    return it->count;
}

/* What is before the return is as it was, since the answer is not known there. */
static uint32_t take_old_token(struct simulation *it) {
    uint32_t before = some_grant(it), index = some_grant(it);
    if (it->model != MODEL_FENCED_MUTEX || before == it->count || before == index) return 0;
    const struct operation *first = &it->list[before];
    struct operation *second = &it->list[index];
    if (first->end > second->end) return 0;
    second->value = first->value - (first->end < second->call ? below(it, 3) : 0);
    return second->end;
}

static uint32_t appear_from_nowhere(struct simulation *it) {
    uint32_t begin = EARLY + 2 * below(it, (it->clock - EARLY) / 2), end = begin + 2 + 2 * below(it, 20);
    if (it->taken[begin] || it->taken[end]) return 0;
    uint32_t index = call(it, ONE, below(it, 2) ? OPERATION_RENEW : OPERATION_RELEASE, begin);
    it->list[index].outcome = OUTCOME_OK;
    it->list[index].end = it->list[index].returned_at = end;
    if (end > it->clock) it->clock = end;
    return end;
}

/* An operation that is called and answered at the end. */
static uint32_t add(struct simulation *it, uint32_t process, enum operation_kind kind) {
    uint32_t index = call(it, process, kind, next_position(it));
    it->list[index].end = it->list[index].returned_at = next_position(it);
    it->list[index].outcome = OUTCOME_OK;
    if (kind == OPERATION_ACQUIRE && it->model == MODEL_FENCED_MUTEX) it->list[index].value = ++it->token;
    return it->list[index].end;
}

static enum operation_kind some_proof(struct simulation *it) {
    return below(it, 2) ? OPERATION_RENEW : OPERATION_RELEASE;
}

static uint32_t hold_twice(struct simulation *it) {
    if (!make_free(it)) return 0;
    add(it, ONE, OPERATION_ACQUIRE);
    uint32_t end = add(it, OTHER, OPERATION_ACQUIRE);
    return it->leases ? add(it, ONE, some_proof(it)) : end;
}

static uint32_t release_too_often(struct simulation *it) {
    if (!make_free(it)) return 0;
    uint32_t depth = it->model == MODEL_REENTRANT_MUTEX ? 1 + below(it, 2) : 1;
    for (uint32_t each = 0; each < depth; each++) add(it, ONE, OPERATION_ACQUIRE);
    for (uint32_t each = 0; each < depth; each++) add(it, ONE, OPERATION_RELEASE);
    return add(it, ONE, OPERATION_RELEASE);
}

static uint32_t need_a_token_between(struct simulation *it) {
    if (it->model != MODEL_FENCED_MUTEX || !make_free(it) || !stray(it, OTHER, OPERATION_ACQUIRE)) return 0;
    add(it, ONE, OPERATION_ACQUIRE);
    add(it, ONE, OPERATION_RELEASE);
    add(it, OTHER, it->leases ? some_proof(it) : OPERATION_RELEASE);
    return add(it, ONE, OPERATION_ACQUIRE);
}

static uint32_t (*const IMPOSSIBLE[])(struct simulation *) = {take_old_token, appear_from_nowhere, hold_twice,
                                                              release_too_often, need_a_token_between};

/* --- judging --- */

/* In the words of tests/checkers/test_linearizable.py. */
static void print(const struct simulation *it) {
    for (uint32_t position = 1; position <= it->clock; position++)
        for (uint32_t each = 0; each < it->count; each++) {
            const struct operation *operation = &it->list[each];
            const char *kind = operation_kind_name((enum operation_kind)operation->kind);
            uint32_t process = operation->process;
            if (operation->call == position) printf("%u+%s ", process, kind);
            if (operation->call == position && operation->outcome != OUTCOME_OK) printf("%u?%s ", process, kind);
            if (operation->end != position) continue;
            printf("%u=%s", process, kind);
            if (operation->value != OPERATION_NIL) printf(":%lld", (long long)operation->value);
            printf(" ");
        }
    printf("\n");
}

/* Is the verdict the one that is known, and the shortest prefix? */
static bool is_right(struct simulation *it, uint64_t number, uint32_t fault, uint64_t *several) {
    struct concurrent_object object = {.list = it->list, .count = it->count, .clock = it->clock};
    struct linearizable_settings settings = {
        .model = it->model, .permits = 1, .initial = OPERATION_NIL, .leases = it->leases};
    struct limits limits;
    struct linearizable_result result;
    limits_begin(&limits, 0, 0);
    linearizable_decide(&object, ALL_PROCESSES, &settings, &limits, &result);
    *several += result.configurations > 1;
    bool said = result.status == (fault ? VERDICT_VIOLATED : VERDICT_HOLDS);
    if (said && (!fault || (result.prefix == fault && it->list[result.operation].end == fault)) && limits.used == 0)
        return true;
    printf("history %llu of %s%s: it is known to %s (%u), the checker says %u (status %d, operation %u, %s); "
           "%llu bytes left\n",
           (unsigned long long)number, model_name(it->model), it->leases ? ", leases" : "",
           fault ? "be impossible" : "have an order", fault, fault || !said ? result.prefix : 0, result.status,
           result.operation, result.why, (unsigned long long)limits.used);
    print(it);
    return false;
}

int main(int argc, char **argv) {
    static struct simulation it;
    uint64_t histories = argc == 4 ? strtoull(argv[2], NULL, 10) : 0, several = 0, impossible = 0;
    if (histories == 0 || !model_find(argv[1], &it.model) || !model_is_owned(it.model))
        return fprintf(stderr, "usage: linearizable_simulated MODEL HISTORIES SEED\n"), 2;
    uint64_t seed = strtoull(argv[3], NULL, 10), ignored = 0;
    for (uint64_t each = 0; each < histories; each++) {
        it.random = random_split(seed + each, 0);
        make(&it);
        if (!is_right(&it, seed + each, 0, &several)) return 1;
        uint32_t fault = IMPOSSIBLE[below(&it, sizeof IMPOSSIBLE / sizeof *IMPOSSIBLE)](&it);
        impossible += fault != 0;
        if (fault && !is_right(&it, seed + each, fault, &ignored)) return 1;
    }
    printf("%s: %llu histories from seed %llu, %llu of them with several configurations, %llu made impossible: the "
           "verdict and prefix that are known\n",
           argv[1], (unsigned long long)histories, (unsigned long long)seed, (unsigned long long)several,
           (unsigned long long)impossible);
    return 0;
}
