/* evict: the server is short of memory, and the lock's key is what it throws out.
 *
 * The limit is set below what is in use, so that at the next write every key that the policy may throw out has to go:
 * which one it would pick first is a matter of samples, and a schedule must not depend on that. Then the memory is
 * there again. Under noeviction nothing goes and writes are refused, until it is healed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"

extern const struct fault FAULT_EVICT;

enum { WRITES_MOST = 10000 };

static const struct fault_word OPTIONS[] = {
    {"policy", "volatile-lru",
     "volatile-lru, -lfu, -random, -ttl (keys with a lease), allkeys-lru, -lfu, -random (all), noeviction (none)"},
    {"key", "", "a key that is there and must go"},
    {0},
};

struct state {
    bool changed;
    long long evicted; /* so far */
    char policy[32], memory[32];
};

static struct state *state_of(struct fault_target *target) {
    return (struct state *)(void *)target->state;
}

static const char *policy_of(const struct fault_target *target) {
    return fault_text(&FAULT_EVICT, target, "policy");
}

static bool evicts(const struct fault_target *target) {
    return strcmp(policy_of(target), "noeviction") != 0;
}

static long long evicted_count(const struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    char count[32];
    if (!ask_good(target->socket, &answer, report, "INFO stats")) return -1;
    return answer_line(&answer, "evicted_keys", count, sizeof count) ? strtoll(count, NULL, 10) : -1;
}

/* How many keys of its databases ("keys=3,expires=1,...") may be thrown out. */
static long long candidates_count(const struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    bool only_leased = strncmp(policy_of(target), "volatile", 8) == 0;
    const char *what = only_leased ? ",expires=" : ":keys=";
    long long count = 0;
    if (!ask_good(target->socket, &answer, report, "INFO keyspace")) return 0;
    for (const char *at = answer.text; (at = strstr(at, what)); at += strlen(what))
        count += strtoll(at + strlen(what), NULL, 10);
    return count;
}

static bool restore(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    if (!state->changed) return true;
    if (!ask_good(target->socket, &answer, report, "CONFIG SET maxmemory %s", state->memory) ||
        !ask_good(target->socket, &answer, report, "CONFIG SET maxmemory-policy %s", state->policy))
        return false;
    state->changed = false;
    return true;
}

/* The server makes room before every write; on a slow machine it takes several to throw all out. A write that found
 * room is a candidate itself, so it is taken back. */
static bool press(struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    char key[PROBE_KEY];
    probe_key(target, "evict", key);
    for (int each = 0; each < WRITES_MOST; each++) {
        if (!ask(target->socket, &answer, report, "SET %s written", key)) return false;
        if (!ask(target->socket, &answer, report, "DEL %s", key)) return false;
        if (candidates_count(target, report) == 0) return true;
    }
    return fault_fail(report, "keys were left after %d writes", WRITES_MOST);
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    const char *key = fault_text(&FAULT_EVICT, target, "key");
    if (*key && !ask_good(target->socket, &answer, report, "EXISTS %s", key)) return false;
    if (*key && answer.number == 0) return fault_fail(report, "there is no key %.60s that could go", key);
    state->evicted = evicted_count(target, report);
    if (state->evicted < 0) return false;
    if (!ask_setting(target->socket, "maxmemory", state->memory, sizeof state->memory, report) ||
        !ask_setting(target->socket, "maxmemory-policy", state->policy, sizeof state->policy, report) ||
        !ask_good(target->socket, &answer, report, "CONFIG SET maxmemory-policy %s", policy_of(target)))
        return false;
    state->changed = true;
    if (!ask_good(target->socket, &answer, report, "CONFIG SET maxmemory 1")) return false;
    if (!evicts(target)) return true;
    return press(target, report) && restore(target, report);
}

static bool prove_refused(struct fault_target *target, struct fault_report *report) {
    struct answer answer, removed;
    char key[PROBE_KEY];
    probe_key(target, "evict", key);
    if (!ask(target->socket, &answer, report, "SET %s written", key)) return false;
    snprintf(report->text, sizeof report->text, "a write is answered: %.200s", answer.text);
    if (strncmp(answer.text, "OOM", 3) == 0) return true;
    struct fault_report ignored;
    ask(target->socket, &removed, &ignored, "DEL %s", key);
    return false;
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    struct answer answer = {0};
    const char *key = fault_text(&FAULT_EVICT, target, "key");
    if (!evicts(target)) return prove_refused(target, report);
    if (*key && !ask_good(target->socket, &answer, report, "EXISTS %s", key)) return false;
    long long count = evicted_count(target, report) - state_of(target)->evicted;
    snprintf(report->text, sizeof report->text, "%lld keys evicted%s%.60s%s", count, *key ? ", " : "", key,
             !*key           ? ""
             : answer.number ? " is there"
                             : " is gone");
    return count > 0 && answer.number == 0;
}

const struct fault FAULT_EVICT = {
    .name = "evict",
    .summary = "the server is short of memory: the lock's key is thrown out, or writes are refused",
    .proof = "evicted_keys has grown and the named key is gone; under noeviction, -OOM to a write of its own",
    .explanation =
        "An operator's mistake: locks in a server that serves as a cache. For a moment maxmemory is below what is in use\n"
        "and everything goes that the policy may throw out. volatile-*: exactly the keys that expire - the locks; keys\n"
        "without an expiry, such as a counter of tokens, stay. allkeys-*: these too. noeviction: nothing goes, but until\n"
        "it is healed whatever needs memory is answered by -OOM, while deleting and renewing still work. Not modelled:\n"
        "which key goes first.",
    .source = "Redis, Key eviction; langfuse#15509 (volatile-lru evicted the locks), RedLock.net#101 (allkeys-lru)",
    .target = "server",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = restore,
};
