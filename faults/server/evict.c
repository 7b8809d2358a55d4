/* evict: the server is short of memory and evicts the lock's key.
 *
 * maxmemory is set below what is in use, so that at the next write the server evicts every key that the policy allows:
 * which key it would evict first depends on random samples, and a schedule must not. Then the limit is restored. Under
 * noeviction no key is evicted, and writes are refused until the fault is healed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"

enum { WRITES_MOST = 10000 };

struct evict_state {
    bool changed;
    long long evicted; /* before the fault */
    char policy[32], memory[32];
};

static bool evicts(const struct fault_target *target) {
    return strcmp(fault_option_text(target, "policy"), "noeviction") != 0;
}

static long long evicted_count(const struct fault_target *target, struct fault_report *report) {
    char count[32];
    if (!admin_info_read(target->socket, "stats", "evicted_keys", count, sizeof count, report)) return -1;
    return count[0] ? strtoll(count, NULL, 10) : -1;
}

/* How many keys of its databases ("keys=3,expires=1,...") the policy may evict. */
static long long candidates_count(const struct fault_target *target, struct fault_report *report) {
    struct admin_reply reply;
    bool only_leased = strncmp(fault_option_text(target, "policy"), "volatile", 8) == 0;
    const char *what = only_leased ? ",expires=" : ":keys=";
    long long count = 0;
    if (!admin_command_ok(target->socket, &reply, report, "INFO keyspace")) return 0;
    for (const char *at = reply.text; (at = strstr(at, what)); at += strlen(what))
        count += strtoll(at + strlen(what), NULL, 10);
    return count;
}

static bool evict_restore(struct fault_target *target, struct fault_report *report) {
    struct evict_state *state = (void *)target->state;
    if (!state->changed) return true;
    if (!admin_command_ok(target->socket, NULL, report, "CONFIG SET maxmemory %s", state->memory) ||
        !admin_command_ok(target->socket, NULL, report, "CONFIG SET maxmemory-policy %s", state->policy))
        return false;
    state->changed = false;
    return true;
}

/* The server evicts before every write; on a slow machine several writes are needed until all candidates are evicted. A
 * write that succeeded is a candidate itself, so it is deleted. */
static bool press(struct fault_target *target, struct fault_report *report) {
    const struct probe_key key = fault_probe_key(target);
    for (int each = 0; each < WRITES_MOST; each++) {
        if (!admin_command(target->socket, NULL, report, "SET %s written", key.text)) return false;
        if (!admin_command(target->socket, NULL, report, "DEL %s", key.text)) return false;
        if (candidates_count(target, report) == 0) return true;
    }
    return fault_fail(report, "keys were left after %d writes", WRITES_MOST);
}

static bool evict_inject(struct fault_target *target, struct fault_report *report) {
    struct evict_state *state = (void *)target->state;
    struct admin_reply reply;
    const char *key = fault_option_text(target, "key");
    if (*key && !admin_command_ok(target->socket, &reply, report, "EXISTS %s", key)) return false;
    if (*key && reply.number == 0) return fault_fail(report, "there is no key %.60s to evict", key);
    state->evicted = evicted_count(target, report);
    if (state->evicted < 0) return false;
    if (!admin_setting_read(target->socket, "maxmemory", state->memory, sizeof state->memory, report) ||
        !admin_setting_read(target->socket, "maxmemory-policy", state->policy, sizeof state->policy, report) ||
        !admin_command_ok(target->socket, &reply, report, "CONFIG SET maxmemory-policy %s",
                          fault_option_text(target, "policy")))
        return false;
    state->changed = true;
    if (!admin_command_ok(target->socket, &reply, report, "CONFIG SET maxmemory 1")) return false;
    if (!evicts(target)) return true;
    return press(target, report) && evict_restore(target, report);
}

static bool evict_prove(struct fault_target *target, struct fault_report *report) {
    const struct evict_state *state = (void *)target->state;
    struct admin_reply reply = {0};
    const char *key = fault_option_text(target, "key");
    if (!evicts(target)) return admin_write_refused(target, FAULT_CHOICES("OOM"), report);
    if (*key && !admin_command_ok(target->socket, &reply, report, "EXISTS %s", key)) return false;
    long long count = evicted_count(target, report) - state->evicted;
    snprintf(report->text, sizeof report->text, "%lld keys evicted%s%.60s%s", count, *key ? ", " : "", key,
             !*key          ? ""
             : reply.number ? " is there"
                            : " is gone");
    return count > 0 && reply.number == 0;
}

const struct fault FAULT_EVICT = {
    .row = &FAULT_ROWS[FAULT_ID_EVICT],
    .explanation =
        "An operator's mistake: locks in a server that serves as a cache. For a moment maxmemory is below what is in\n"
        "use, and the server evicts every key that the policy allows. volatile-*: exactly the keys that expire - the\n"
        "locks; keys without an expiry, such as a token counter, stay. allkeys-*: these too. noeviction: no key is\n"
        "evicted, but until the fault is healed commands that need memory are answered -OOM, while deleting and\n"
        "renewing still work. Not modelled: which key is evicted first.",
    .target = "server",
    .options = FAULT_OPTIONS(
        {"policy", "volatile-lru",
         "volatile-lru, -lfu, -random, -ttl (keys with a lease), allkeys-lru, -lfu, -random (all), noeviction (none)"},
        {"key", "", "a key that exists and must be evicted"}),
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = evict_inject,
    .prove = evict_prove,
    .heal = evict_restore,
};
