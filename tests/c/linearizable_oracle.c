/* linearizable_oracle MODEL HISTORIES SEED [long]: the linearizable checker against the definition, on small random
 * histories.
 *
 * The oracle tries all orders: an operation may come next when no firm one that is still to come returned before it was
 * called, and when the model allows it; all firm ones must come, free ones may. It judges every prefix, so that the
 * shortest one that is not linearizable is compared too. With leases, which half of the histories of locks with an
 * owner have, a hold may end by itself between two operations, once the acquires that it consists of were answered.
 * Half of the histories are what a correct object did, some of them with one thing changed; half are arbitrary, or of
 * fenced-mutex such that little room is left for tokens that are not known. A quarter has leases of known length, a
 * quarter renewals that state tokens, a quarter refusals that say that the lock was lost; half of a register's have
 * adds. Of the first two, where something is ambiguous the checker doubts for the lock: it finds no violation that the
 * definition does not find, and none earlier.
 *
 * Each history is also judged with less memory than that takes.
 *
 * long: histories too long for all orders, of the locks that have an owner. There the checker is compared with itself
 * without dropping configurations.
 *
 * Prints one line: how many were linearizable. Exit status: 0; 1 they disagree, and the history is printed; 2 bad
 * usage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/linearizability/linearizable.h"
#include "harness/scheduler/random.h"

enum {
    OPERATIONS = 11,
    LONG = 24,
    PROCESSES = 4,
    MEMORY_MOST = 64 << 20, /* what no search needs that ends */
    FIRST_TOKEN = 10,
    TOKENS = 18,
    VALUES = 3,
    STATES = 1 << 12
};

struct model_state {
    int owner, depth; /* of a count: how many are taken */
    int64_t token;    /* or the register's value */
    int until;        /* 1 and the latest operation of the hold that says since when it may end by itself; 0: none */
};

struct trial {
    struct operation list[LONG];
    uint32_t most; /* operations: OPERATIONS or LONG */
    uint32_t count, clock, processes, permits;
    enum model model;
    bool leases, timed, renews, loses, adds;
    struct random extra; /* draws what the last four need, so that the histories without them stay as they were */
    bool dense; /* tokens follow each other closely, and much is ambiguous: what an unknown grant took is tight */
    struct random random;
    int open[PROCESSES];      /* the operation under way, -1 */
    struct model_state state; /* of the object that is simulated */
    bool happened[LONG];
    uint32_t ended[LONG];                   /* position of the answer, whatever it was; 0: none came */
    unsigned doubt;                         /* how often an answer is lost, in eighths */
    bool holds[PROCESSES];                  /* as the process sees it */
    uint32_t seen[1 << OPERATIONS][STATES]; /* by the oracle: the search that saw it last */
    uint32_t searches;
};

static uint32_t below(struct trial *trial, uint32_t limit) {
    return (uint32_t)random_below(&trial->random, limit);
}

static uint32_t below_extra(struct trial *trial, uint32_t limit) {
    return (uint32_t)random_below(&trial->extra, limit);
}

/* Of a register its value, which is a number where something is added. */
static int64_t first_token(const struct trial *trial) {
    return trial->model == MODEL_REGISTER && !trial->adds ? OPERATION_NIL : 0;
}

/* --- the models, as they are defined --- */

static bool count_step(const struct trial *trial, struct model_state *state, const struct operation *operation) {
    int permits = trial->model == MODEL_MUTEX ? 1 : (int)trial->permits;
    if (operation->kind == OPERATION_ACQUIRE) return state->depth < permits && ++state->depth;
    return state->depth > 0 && state->depth-- > 0;
}

static bool owner_step(const struct trial *trial, struct model_state *state, const struct operation *operation,
                       int64_t token) {
    int process = (int)operation->process;
    if (operation->kind == OPERATION_RENEW) {
        bool states = trial->model == MODEL_FENCED_MUTEX && operation->value != OPERATION_NIL;
        if (state->owner != process || (states && token < state->token)) return false;
        if (states) state->token = token;
        return true;
    }
    if (operation->kind == OPERATION_LOSS) {
        if (state->owner == process) state->owner = -1, state->depth = state->until = 0;
        return true;
    }
    if (operation->kind == OPERATION_RELEASE) {
        if (state->owner != process) return false;
        if (--state->depth == 0) state->owner = -1, state->until = 0;
        return true;
    }
    bool again = trial->model == MODEL_REENTRANT_MUTEX && state->owner == process;
    if (state->owner >= 0 && !again) return false;
    if (trial->model == MODEL_FENCED_MUTEX && token <= state->token) return false;
    if (trial->model == MODEL_FENCED_MUTEX) state->token = token;
    state->owner = process;
    state->depth++;
    return true;
}

static bool register_step(struct model_state *state, const struct operation *operation) {
    if (operation->kind == OPERATION_READ) return operation->value == state->token;
    if (operation->kind == OPERATION_CAS && operation->from != state->token) return false;
    if (operation->kind == OPERATION_ADD)
        return state->token != OPERATION_NIL && (state->token += operation->value, true);
    state->token = operation->value;
    return true;
}

static bool step(const struct trial *trial, struct model_state *state, const struct operation *operation,
                 int64_t token) {
    if (trial->model == MODEL_REGISTER) return register_step(state, operation);
    if (trial->model == MODEL_MUTEX || trial->model == MODEL_SEMAPHORE) return count_step(trial, state, operation);
    return owner_step(trial, state, operation, token);
}

/* --- the oracle --- */

static bool is_firm(const struct operation *operation, uint32_t prefix) {
    return operation->outcome == OUTCOME_OK && operation->end <= prefix;
}

static bool may_be_next(const struct trial *trial, unsigned placed, uint32_t next, uint32_t prefix) {
    const struct operation *operation = &trial->list[next];
    if (placed >> next & 1 || operation->outcome == OUTCOME_REFUSED || operation->call > prefix) return false;
    for (uint32_t each = 0; each < trial->count; each++)
        if (!(placed >> each & 1) && is_firm(&trial->list[each], prefix) && trial->list[each].end < operation->call)
            return false;
    return true;
}

static unsigned state_number(const struct trial *trial, const struct model_state *state) {
    bool counts = trial->model == MODEL_FENCED_MUTEX || trial->model == MODEL_REGISTER;
    int64_t least = trial->adds ? -OPERATIONS : 0; /* each add takes one away, at most */
    int number = counts ? (int)(state->token == OPERATION_NIL ? 31 : state->token - least) : state->depth;
    return (unsigned)((state->owner + 1) * 512 + number * 16 + state->until);
}

static bool is_timed(const struct operation *operation) {
    return operation->kind < OPERATION_READ && operation->lapses != OPERATION_NIL;
}

/* May the hold end by itself, when these operations have happened? Not before the answer, or the end of the lease. */
static bool may_lapse(const struct trial *trial, unsigned placed, const struct model_state *state, uint32_t prefix) {
    if (state->owner < 0 || (!state->until && !trial->leases)) return false;
    const struct operation *last = state->until ? &trial->list[state->until - 1] : NULL;
    if (last && !is_timed(last) && !trial->leases) return false;
    if (last && is_timed(last) && last->lapses > prefix) return false;
    for (uint32_t each = 0; each < trial->count && last; each++)
        if (!(placed >> each & 1) && is_firm(&trial->list[each], prefix) &&
            trial->list[each].end < (is_timed(last) ? last->lapses : last->end))
            return false;
    return true;
}

static bool explain(struct trial *trial, unsigned placed, struct model_state state, uint32_t prefix) {
    unsigned number = state_number(trial, &state);
    if (trial->seen[placed][number] == trial->searches) return false;
    trial->seen[placed][number] = trial->searches;
    bool all = true;
    for (uint32_t each = 0; each < trial->count; each++)
        all &= placed >> each & 1 || !is_firm(&trial->list[each], prefix);
    if (all) return true;
    struct model_state free = {.owner = -1, .token = state.token};
    if (may_lapse(trial, placed, &state, prefix) && explain(trial, placed, free, prefix)) return true;
    for (uint32_t each = 0; each < trial->count; each++) {
        if (!may_be_next(trial, placed, each, prefix)) continue;
        const struct operation *operation = &trial->list[each];
        bool firm = is_firm(operation, prefix);
        bool any_token = !firm && trial->model == MODEL_FENCED_MUTEX && operation->kind == OPERATION_ACQUIRE;
        const int64_t last = TOKENS + OPERATIONS; /* unknown: any whole number, and more are not needed */
        for (int64_t token = any_token ? 0 : last; token <= last; token++) {
            struct model_state then = state;
            if (!step(trial, &then, operation, any_token ? token : operation->value)) continue;
            bool says = operation->kind == OPERATION_ACQUIRE && (trial->leases || is_timed(operation));
            bool renews = operation->kind == OPERATION_RENEW && is_timed(operation);
            bool sooner = !state.until || state.owner < 0 || !is_timed(operation) || /* to enter again adds nothing */
                          operation->lapses < trial->list[state.until - 1].lapses;
            if ((firm && says && sooner) || renews) then.until = (int)each + 1;
            if (explain(trial, placed | 1u << each, then, prefix)) return true;
        }
    }
    return false;
}

/* The position of the first return that makes it not linearizable; 0: none does. */
static uint32_t first_fault(struct trial *trial) {
    for (uint32_t prefix = 1; prefix <= trial->clock; prefix++) {
        bool returns = false;
        for (uint32_t each = 0; each < trial->count; each++) returns |= trial->list[each].end == prefix;
        if (!returns) continue;
        trial->searches++;
        struct model_state state = {.owner = -1, .token = first_token(trial)};
        if (!explain(trial, 0, state, prefix)) return prefix;
    }
    return 0;
}

/* --- random histories --- */

static int64_t some_value(struct trial *trial, enum operation_kind kind) {
    if (kind == OPERATION_ACQUIRE)
        return trial->model == MODEL_FENCED_MUTEX ? FIRST_TOKEN + below(trial, TOKENS - FIRST_TOKEN) : OPERATION_NIL;
    return kind < OPERATION_READ ? OPERATION_NIL : (int64_t)below(trial, VALUES);
}

static void call(struct trial *trial, uint32_t process) {
    struct operation *operation = &trial->list[trial->count];
    bool usual = below(trial, 4) > 0; /* mostly a process releases what it holds, and acquires what it does not */
    enum operation_kind kind = trial->holds[process] == usual ? OPERATION_RELEASE : OPERATION_ACQUIRE;
    if (model_is_owned(trial->model) && below(trial, 4) == 0) kind = OPERATION_RENEW;
    if (trial->model == MODEL_REGISTER) kind = OPERATION_READ + (enum operation_kind)below(trial, 3);
    trial->clock += 2;
    *operation = (struct operation){.call = trial->clock - 1,
                                    .end = OPERATION_OPEN,
                                    .process = process,
                                    .kind = (uint8_t)kind,
                                    .called_at = trial->clock,
                                    .value = some_value(trial, kind),
                                    .from = kind == OPERATION_CAS ? (int64_t)below(trial, VALUES) : OPERATION_NIL};
    if (trial->adds && below_extra(trial, 2)) {
        operation->kind = OPERATION_ADD;
        operation->from = OPERATION_NIL;
        operation->value--; /* -1 to 1 */
    }
    trial->happened[trial->count] = false;
    trial->ended[trial->count] = 0;
    trial->open[process] = (int)trial->count++;
}

/* An operation that was called takes effect on the simulated object, if it can. */
static void happen(struct trial *trial, uint32_t index) {
    struct operation *operation = &trial->list[index];
    if (operation->kind == OPERATION_READ && operation->end == OPERATION_OPEN) operation->value = trial->state.token;
    int64_t token = trial->state.token + 1 + (trial->dense ? below(trial, 8) == 0 : below(trial, 2));
    if (token < FIRST_TOKEN) token = FIRST_TOKEN;
    if (trial->happened[index] || (trial->most == OPERATIONS && token > TOKENS)) return;
    if (!step(trial, &trial->state, operation, token)) return;
    trial->happened[index] = true;
    if (operation->kind == OPERATION_ACQUIRE) trial->state.until = (int)index + 1;
    if (trial->model == MODEL_FENCED_MUTEX && operation->kind == OPERATION_ACQUIRE) operation->value = token;
}

static void come_back(struct trial *trial, uint32_t process, bool honest) {
    uint32_t index = (uint32_t)trial->open[process];
    struct operation *operation = &trial->list[index];
    if (honest && below(trial, 8) > 0) happen(trial, index);
    trial->clock += 2;
    operation->end = trial->ended[index] = trial->clock - 1;
    trial->open[process] = -1;
    bool happened = honest ? trial->happened[index] : below(trial, 6) > 0, lost = below(trial, 8) < trial->doubt;
    operation->outcome = lost ? OUTCOME_UNKNOWN : happened ? OUTCOME_OK : OUTCOME_REFUSED;
    if (operation->kind == OPERATION_ACQUIRE && (happened || lost)) trial->holds[process] = true;
    if (operation->kind == OPERATION_RELEASE) trial->holds[process] = lost && below(trial, 2);
    if (operation->outcome != OUTCOME_OK) operation->end = OPERATION_OPEN;
}

static void change_one_thing(struct trial *trial) {
    uint32_t index = below(trial, trial->count);
    struct operation *operation = &trial->list[index];
    if (operation->outcome == OUTCOME_OK && below(trial, 2)) {
        operation->value = some_value(trial, operation->kind);
    } else if (operation->outcome == OUTCOME_OK) {
        operation->outcome = OUTCOME_UNKNOWN;
        operation->end = OPERATION_OPEN;
    } else if (trial->ended[index]) {
        operation->outcome = OUTCOME_OK;
        operation->end = trial->ended[index];
    }
}

/* Calls an operation of a kind; tokens rise in the order of calls. */
static void call_kind(struct trial *trial, uint32_t process, enum operation_kind kind) {
    call(trial, process);
    struct operation *operation = &trial->list[trial->count - 1];
    *operation = (struct operation){.call = operation->call,
                                    .end = OPERATION_OPEN,
                                    .process = process,
                                    .kind = (uint8_t)kind,
                                    .called_at = operation->called_at,
                                    .value = OPERATION_NIL,
                                    .from = OPERATION_NIL};
    if (kind == OPERATION_ACQUIRE && trial->state.token + 2 < TOKENS) trial->state.token += 1 + (below(trial, 3) == 0);
    if (kind == OPERATION_ACQUIRE) operation->value = trial->state.token;
    trial->holds[process] = kind != OPERATION_RELEASE;
}

/* Grants of unknown tokens that renewals and releases prove, among known grants with hardly a token between them. */
static void make_tight(struct trial *trial) {
    trial->doubt = below(trial, 2);
    trial->state.token = FIRST_TOKEN;
    for (int each = 0; each < 2; each++) {
        call_kind(trial, PROCESSES - 1, each ? OPERATION_RELEASE : OPERATION_ACQUIRE);
        come_back(trial, PROCESSES - 1, false);
    }
    for (uint32_t strays = 2 + below(trial, 3); strays > 0; strays--) {
        uint32_t process = below(trial, PROCESSES);
        call_kind(trial, process, process < PROCESSES / 2 ? OPERATION_ACQUIRE : OPERATION_RELEASE);
        trial->open[process] = -1;
    }
    for (uint32_t steps = 0; steps < 4 * trial->most; steps++) {
        uint32_t process = below(trial, PROCESSES);
        bool holds = trial->holds[process];
        enum operation_kind proof = below(trial, 2) ? OPERATION_RENEW : OPERATION_RELEASE;
        if (trial->open[process] < 0 && trial->count < trial->most)
            call_kind(trial, process, holds ? proof : OPERATION_ACQUIRE);
        else if (trial->open[process] >= 0 && below(trial, 3) == 0) come_back(trial, process, false);
    }
}

static void make(struct trial *trial) {
    trial->dense = trial->model == MODEL_FENCED_MUTEX && below(trial, 2);
    bool honest = (trial->most == LONG && !trial->dense) || below(trial, 2); /* arbitrary histories go wrong early */
    uint32_t wanted = trial->most - below(trial, below(trial, 2) ? trial->most : 3);
    trial->count = trial->clock = 0;
    trial->processes = trial->most == LONG ? 2 + below(trial, 2) : 1 + below(trial, PROCESSES);
    trial->permits = 1 + below(trial, 3);
    trial->doubt = below(trial, 7);
    trial->leases = model_is_owned(trial->model) && below(trial, 2);
    trial->adds = trial->model == MODEL_REGISTER && below_extra(trial, 2);
    memset(trial->holds, 0, sizeof trial->holds);
    trial->state = (struct model_state){.owner = -1, .token = first_token(trial)};
    memset(trial->open, 0xff, sizeof trial->open);
    if (trial->dense && !honest) {
        make_tight(trial);
        return;
    }
    /* Often the history begins with operations that may happen at any later time: they make others ambiguous. */
    uint32_t strays = trial->dense || below(trial, 2) ? below(trial, trial->most / 2) : 0;
    for (; strays > 0 && trial->count + 3 < wanted; strays--) {
        uint32_t process = below(trial, trial->processes);
        call(trial, process);
        trial->open[process] = -1;
        trial->doubt = trial->dense ? 0 : below(trial, 2);
        struct operation *stray = &trial->list[trial->count - 1];
        uint8_t other = (uint8_t)below(trial, 2);
        if (stray->kind != OPERATION_ADD)
            stray->kind = trial->model == MODEL_REGISTER ? OPERATION_WRITE + other : other;
        if (trial->dense && stray->kind == OPERATION_ACQUIRE) trial->holds[process] = true;
    }
    for (uint32_t steps = 0; steps < 6 * trial->most; steps++) {
        uint32_t process = below(trial, trial->processes);
        bool lapses = trial->state.until && trial->ended[trial->state.until - 1] && below(trial, 8) == 0;
        if (trial->leases && lapses) trial->state = (struct model_state){.owner = -1, .token = trial->state.token};
        if (honest && trial->count && below(trial, 3) == 0) {
            uint32_t index = below(trial, trial->count); /* perhaps late: one of unknown outcome */
            if (trial->list[index].end == OPERATION_OPEN && trial->list[index].outcome == OUTCOME_UNKNOWN)
                happen(trial, index);
        } else if (trial->open[process] >= 0) {
            come_back(trial, process, honest);
        } else if (trial->count < wanted) {
            call(trial, process);
        }
    }
    for (uint32_t changes = below(trial, 3); changes > 0; changes--) change_one_thing(trial);
}

/* Leases of known length, tokens of renewals and losses, in a history that is made. */
static void make_more(struct trial *trial) {
    uint32_t more = model_is_owned(trial->model) ? below_extra(trial, 4) : 0;
    trial->timed = more == 1;
    trial->renews = more == 2 && trial->model == MODEL_FENCED_MUTEX;
    trial->loses = more == 3;
    if (trial->timed) trial->leases = false;
    for (uint32_t each = 0; each < trial->count; each++) {
        struct operation *operation = &trial->list[each];
        bool ok = operation->outcome == OUTCOME_OK, renewal = operation->kind == OPERATION_RENEW;
        if (trial->timed && ok && operation->kind <= OPERATION_RENEW && operation->kind != OPERATION_RELEASE)
            operation->lapses =
                below_extra(trial, 4) ? operation->call + 1 + below_extra(trial, 20) : (int64_t)OPERATION_OPEN;
        if (trial->renews && ok && renewal && below_extra(trial, 4))
            operation->value = FIRST_TOKEN + below_extra(trial, TOKENS - FIRST_TOKEN);
        bool refused = trial->loses && operation->outcome == OUTCOME_REFUSED && trial->ended[each];
        if (!refused || (!renewal && operation->kind != OPERATION_RELEASE)) continue;
        operation->kind = OPERATION_LOSS;
        operation->outcome = OUTCOME_OK;
        operation->end = trial->ended[each];
    }
}

/* Is the checker exact here? Else it doubts for the lock. */
static bool is_decided(const struct trial *trial) {
    bool ambiguous = trial->leases || trial->model == MODEL_REENTRANT_MUTEX;
    for (uint32_t each = 0; each < trial->count; each++) ambiguous |= trial->list[each].outcome == OUTCOME_UNKNOWN;
    return !ambiguous || (!trial->timed && !trial->renews);
}

/* --- comparing --- */

static void print(const struct trial *trial) {
    static const char *const outcomes[] = {"unknown", "ok", "refused"};
    for (uint32_t each = 0; each < trial->count; each++) {
        const struct operation *operation = &trial->list[each];
        printf("  process %u %s [%u, ", operation->process, operation_kind_name((enum operation_kind)operation->kind),
               operation->call);
        if (operation->end == OPERATION_OPEN) printf("open] %s", outcomes[operation->outcome]);
        else printf("%u] %s", operation->end, outcomes[operation->outcome]);
        if (operation->from != OPERATION_NIL)
            printf(operation->kind < OPERATION_READ ? " lapses %lld" : " from %lld", (long long)operation->from);
        printf(operation->value == OPERATION_NIL ? "\n" : " value %lld\n", (long long)operation->value);
    }
}

static void decide(struct trial *trial, bool keep_all, uint64_t memory_bytes, struct limits *limits,
                   struct linearizable_result *result) {
    struct concurrent_object object = {.list = trial->list, .count = trial->count, .clock = trial->clock};
    struct linearizable_settings settings = {.model = trial->model,
                                             .permits = trial->permits,
                                             .initial = first_token(trial),
                                             .leases = trial->leases,
                                             .keep_all = keep_all};
    limits_begin(limits, memory_bytes, 0);
    linearizable_decide(&object, PROCESSES, &settings, limits, result);
}

/* With less memory than it took, wherever that ends, the checker must say so and give back what it has. */
static bool is_limited(struct trial *trial, uint64_t peak) {
    struct limits limits;
    struct linearizable_result result;
    if (peak < 2) return true;
    decide(trial, false, 1 + below(trial, (uint32_t)peak - 1), &limits, &result);
    return result.status == VERDICT_INCONCLUSIVE && limits.exceeded[0] && limits.used == 0;
}

/* The operation that cannot be placed returns at the end of the prefix. What is in its way was called before; it is
 * named once, and is another operation. */
static bool is_evidence(const struct trial *trial, const struct linearizable_result *result) {
    if (trial->list[result->operation].end != result->prefix || result->blocker_count > BLOCKERS_KEPT) return false;
    for (int each = 0; each < result->blocker_count; each++) {
        uint32_t blocker = result->blockers[each];
        if (blocker == result->operation || blocker >= trial->count || trial->list[blocker].call > result->prefix)
            return false;
        for (int other = 0; other < each; other++)
            if (result->blockers[other] == blocker) return false;
    }
    return true;
}

static bool agree(struct trial *trial, uint64_t number, uint64_t *violated) {
    struct limits limits;
    struct linearizable_result result, full;
    decide(trial, false, MEMORY_MOST, &limits, &result);
    uint64_t left = limits.used;
    bool limited = is_limited(trial, limits.peak);
    uint32_t said = result.status == VERDICT_VIOLATED ? result.prefix : 0, fault;
    if (trial->most == LONG) {
        decide(trial, true, MEMORY_MOST, &limits, &full);
        if (full.status == VERDICT_INCONCLUSIVE) return true;
        fault = full.status == VERDICT_VIOLATED ? full.prefix : 0;
    } else {
        fault = first_fault(trial);
    }
    *violated += fault != 0;
    bool named = !said || is_evidence(trial, &result);
    bool right = is_decided(trial) ? said == fault : !said || (fault && fault <= said);
    if (right && named && result.status != VERDICT_INCONCLUSIVE && left == 0 && limited) return true;
    printf(
        "history %llu of %s (%u permits%s): the definition says %u, the checker %u (status %d, operation %u, %s%s; %llu "
        "bytes left%s)\n",
        (unsigned long long)number, model_name(trial->model), trial->permits, trial->leases ? ", leases" : "", fault,
        said, result.status, result.operation, result.why, result.fault, (unsigned long long)left,
        limited ? "" : "; with less memory it decides all the same, or keeps some");
    print(trial);
    return false;
}

int main(int argc, char **argv) {
    static struct trial trial;
    uint64_t histories = argc >= 4 ? strtoull(argv[2], NULL, 10) : 0, violated = 0;
    bool is_long = argc == 5 && strcmp(argv[4], "long") == 0;
    if (histories == 0 || argc > 4 + is_long || !model_find(argv[1], &trial.model))
        return fprintf(stderr, "usage: linearizable_oracle MODEL HISTORIES SEED [long]\n"), 2;
    uint64_t seed = strtoull(argv[3], NULL, 10);
    trial.most = is_long ? LONG : OPERATIONS;
    for (uint64_t each = 0; each < histories; each++) {
        trial.random.state = (seed + each) * 0x9e3779b97f4a7c15u; /* each history has a seed of its own */
        trial.extra.state = (seed + each) * 0xd1b54a32d192ed03u;
        make(&trial);
        make_more(&trial);
        if (trial.count && !agree(&trial, seed + each, &violated)) return 1;
    }
    printf("%s: %llu histories from seed %llu, %llu of them not linearizable: the same verdict and prefix for each\n",
           argv[1], (unsigned long long)histories, (unsigned long long)seed, (unsigned long long)violated);
    return 0;
}
