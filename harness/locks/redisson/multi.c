/* Redisson's multi lock: several locks as one, all of them or none. */
#include "harness/locks/redisson/multi.h"

/* How long one round may take when the caller sets no limit. */
enum { ROUND_MS = 1500 * MULTI_PARTS };

enum outcome multi_open(struct lock *lock) {
    static const struct redisson_rule usual;
    static const char *const suffixes[MULTI_PARTS] = {":1", ":2", ":3"};
    struct multi *self = lock->state;
    enum outcome opened = OUTCOME_OK;
    for (int part = 0; part < MULTI_PARTS && opened == OUTCOME_OK; part++) {
        struct key *name = &self->names[part];
        *name = key_make("", lock->options.resource, lock->options.resource_length, suffixes[part]);
        opened = redisson_hash_open(&self->parts[part], lock->env, name->bytes, name->length, &usual);
    }
    return opened;
}

static bool holds_any(const struct multi *self) {
    for (int part = 0; part < MULTI_PARTS; part++)
        if (self->parts[part].depth > 0) return true;
    return false;
}

/* The watchdog renews the parts that are held, and goes on as long as any of them is renewed. */
static enum outcome renew_held(struct lock *lock, struct env *env) {
    struct multi *self = lock->state;
    int counts[3] = {0};
    for (int part = 0; part < MULTI_PARTS; part++)
        if (self->parts[part].depth > 0) counts[redisson_hash_renew(&self->parts[part], env, lock->options.lease_ms)]++;
    if (counts[OUTCOME_OK]) return OUTCOME_OK;
    return counts[OUTCOME_UNKNOWN] ? OUTCOME_UNKNOWN : OUTCOME_REFUSED;
}

enum outcome multi_renew(struct lock *lock) {
    struct multi *self = lock->state;
    int counts[3] = {0};
    for (int part = 0; part < MULTI_PARTS; part++)
        counts[redisson_hash_renew(&self->parts[part], lock->env, lock->options.lease_ms)]++;
    if (counts[OUTCOME_OK] == MULTI_PARTS) return OUTCOME_OK;
    return counts[OUTCOME_REFUSED] ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
}

static void part_granted(struct lock *lock, struct redisson *part) {
    struct multi *self = lock->state;
    struct watchdog *watchdog = &self->parts[0].watchdog;
    if (!holds_any(self)) {
        watchdog->renew = renew_held;
        watchdog->period_ms = lock->options.lease_ms / 3 > 0 ? lock->options.lease_ms / 3 : 1;
    }
    part->depth++;
    watchdog_start(watchdog, lock); /* it runs already, or has ended by a refused renewal */
}

/* Releases the first `count` parts. OK: all were ours. A part that is given back may be held from before: the others
 * are renewed all the same. */
static enum outcome release_parts(struct lock *lock, int count) {
    struct multi *self = lock->state;
    int counts[3] = {0};
    for (int number = 0; number < count; number++) {
        struct redisson *part = &self->parts[number];
        bool freed;
        counts[redisson_hash_release(part, lock, redisson_hash_unlock, &freed)]++;
        part->depth = freed || part->depth == 0 ? 0 : part->depth - 1;
    }
    if (!holds_any(self)) watchdog_stop(&self->parts[0].watchdog);
    if (counts[OUTCOME_UNKNOWN]) return OUTCOME_UNKNOWN;
    return counts[OUTCOME_REFUSED] ? OUTCOME_REFUSED : OUTCOME_OK;
}

/* Takes one part after the other. If one is not granted within wait_ms, those before it are given back, and also that
 * one if its outcome is unknown. */
static struct lock_grant round_of_all(struct lock *lock, int64_t wait_ms) {
    struct multi *self = lock->state;
    const struct multi_rule *rule = lock->type->variant;
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    struct lock_grant grant = {.outcome = OUTCOME_UNKNOWN};
    int64_t answers = 0;
    for (int part = 0; part < MULTI_PARTS; part++) {
        const struct push_waiter waiter = {rule->attempt, &self->parts[part], &self->parts[part].channel};
        int64_t left_ms = (until_ns - env_mono_ns(lock->env) + ENV_NS_PER_MS - 1) / ENV_NS_PER_MS;
        grant = push_until_granted(lock, left_ms > 0 ? left_ms : 0, &waiter);
        answers = env_answers_add(answers, grant.outcome);
        if (grant.outcome == OUTCOME_OK) {
            part_granted(lock, &self->parts[part]);
            continue;
        }
        if (grant.outcome == OUTCOME_UNKNOWN && rule->keeps_unknown) break;
        int taken = grant.outcome == OUTCOME_UNKNOWN ? part + 1 : part;
        if (taken > 0) release_parts(lock, taken);
        break;
    }
    env_tell_answers(lock->env, ENV_ASKED_GRANT | ENV_ASKED_PARTS, answers, grant.outcome);
    return grant;
}

struct lock_grant multi_acquire(struct lock *lock, int64_t wait_ms) {
    if (wait_ms >= 0) return round_of_all(lock, wait_ms);
    for (;;) {
        struct lock_grant grant = round_of_all(lock, ROUND_MS);
        if (grant.outcome != OUTCOME_REFUSED) return grant;
    }
}

enum outcome multi_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    return release_parts(lock, MULTI_PARTS);
}

void multi_close(struct lock *lock) {
    struct multi *self = lock->state;
    watchdog_stop(&self->parts[0].watchdog);
    for (int part = 0; part < MULTI_PARTS; part++) {
        redisson_hash_close(&self->parts[part]);
        key_free(&self->names[part]);
    }
}

const struct lock_type LOCK_MULTI = {
    .name = "multi",
    .summary = "Redisson's multi lock: three locks as one, all or nothing",
    .explanation =
        "Three locks as in pubsub are acquired one after the other, in the same order by every client. If one is\n"
        "not granted in time (the caller's limit, or rounds of 4.5 s) those before it are released again.\n"
        "Promises: as pubsub, for all three at once; a client that gives up keeps none.\n"
        "Costs: three times pubsub; a lock that is taken and rolled back is unavailable to others meanwhile.\n"
        "Breaks: where any of the three does. Its parts are on one server here: more of them do not make it safer,\n"
        "as a majority of independent servers is meant to. A client that dies in the middle leaves parts held for\n"
        "one lease.",
    .source = "Redisson, RedissonMultiLock",
    MULTI_FIELDS,
    .variant = &(const struct multi_rule){.attempt = redisson_hash_attempt},
};
