/* The Redlock algorithm of redis.io. */
#include "harness/locks/redlock/redlock.h"

enum { DRIFT_PERCENT = 1, DRIFT_MS = 2, NODE_LIMIT_PERCENT = 5, NODE_LIMIT_LEAST_MS = 5, EXTENSIONS_MOST = 10 };

const struct poll_pace REDLOCK_PACE = {.first_ms = 50, .most_ms = 50, .spread_ms = 200};
const struct poll_pace REDLOCK_NODE_PACE = {.first_ms = 100, .most_ms = 100, .spread_ms = 200};

const struct redlock_rule REDLOCK_RULE = {.now_ns = env_mono_ns, .checks = true, .extensions_most = EXTENSIONS_MOST};

static const struct redlock_rule *redlock_rule_of(const struct lock *lock) {
    return lock->type->variant;
}

static int64_t validity_ns(const struct lock *lock, const struct redlock_rule *rule) {
    int64_t lease_ns = lock->options.lease_ms * ENV_NS_PER_MS;
    int64_t drift_ns = lease_ns / 100 * DRIFT_PERCENT + DRIFT_MS * ENV_NS_PER_MS;
    return rule->adds_drift ? lease_ns + drift_ns : lease_ns - drift_ns;
}

/* A node that does not answer must not use up the validity that the others give. */
static int64_t node_limit_ms(const struct lock *lock) {
    int64_t share_ms = lock->options.lease_ms * NODE_LIMIT_PERCENT / 100;
    int64_t limit_ms = share_ms > NODE_LIMIT_LEAST_MS ? share_ms : NODE_LIMIT_LEAST_MS;
    int64_t usual_ms = env_reply_limit_ms(lock->env);
    return limit_ms < usual_ms ? limit_ms : usual_ms;
}

static enum outcome redlock_load(struct lock *lock, struct env *env, int node, int64_t limit_ms) {
    (void)env, (void)limit_ms;
    return set_nx_px_load_on(lock, node);
}

enum outcome redlock_open(struct lock *lock) {
    ((struct redlock *)lock->state)->base.renew.source = redlock_rule_of(lock)->renew;
    struct tally tally = majority_ask(lock, lock->env, 0, redlock_load);
    return majority_outcome(&tally);
}

/* Converts a stamp of the variant's clock to the monotonic clock, by which validities are stated: the same time is left
 * by both. */
static int64_t stated_ns(const struct env *env, const struct redlock_rule *rule, int64_t expires_ns) {
    int64_t mono_ns = env_mono_ns(env); /* read first, so that no more is stated than is left */
    return mono_ns + expires_ns - rule->now_ns(env);
}

struct lock_grant redlock_attempt(struct lock *lock) {
    struct redlock *self = lock->state;
    const struct redlock_rule *rule = redlock_rule_of(lock);
    set_nx_px_new_owner(lock);
    int64_t expires_ns = rule->now_ns(lock->env) + validity_ns(lock, rule);
    struct tally tally = majority_ask_for(ENV_ASKED_GRANT, lock, lock->env, node_limit_ms(lock), set_nx_px_set_on);
    env_checkpoint(lock->env, "after-acquire-reply");
    if (rule->from_answers) expires_ns = rule->now_ns(lock->env) + validity_ns(lock, rule);
    bool late = rule->checks && rule->now_ns(lock->env) >= expires_ns;
    if (majority_outcome(&tally) == OUTCOME_OK && !late) {
        self->expires_ns = expires_ns;
        self->extensions = 0;
        bool states = rule->checks && !rule->grants_for_ever;
        return (struct lock_grant){.outcome = OUTCOME_OK,
                                   .valid_until_ns = states ? stated_ns(lock->env, rule, expires_ns) : 0};
    }
    majority_ask_for(ENV_ASKED_RELEASE, lock, lock->env, node_limit_ms(lock), set_nx_px_release_on);
    return (struct lock_grant){.outcome = tally.silent == tally.nodes ? OUTCOME_UNKNOWN : OUTCOME_REFUSED};
}

enum outcome redlock_extend(struct lock *lock, struct env *env) {
    struct redlock *self = lock->state;
    const struct redlock_rule *rule = redlock_rule_of(lock);
    int64_t now_ns = rule->now_ns(env), expires_ns = now_ns + validity_ns(lock, rule);
    bool states = rule->checks && !rule->extends_silently, checks_again = states && !rule->extends_expired;
    if (now_ns >= self->expires_ns && !rule->extends_expired) return OUTCOME_REFUSED;
    if (rule->extensions_most && self->extensions >= rule->extensions_most) return OUTCOME_REFUSED;
    struct tally tally = majority_ask_for(ENV_ASKED_EXTENSION, lock, env, node_limit_ms(lock), set_nx_px_renew_on);
    enum outcome outcome = majority_outcome(&tally);
    if (outcome != OUTCOME_OK) return outcome;
    if (rule->from_answers) expires_ns = rule->now_ns(env) + validity_ns(lock, rule);
    if (checks_again && rule->now_ns(env) >= self->expires_ns) return OUTCOME_REFUSED; /* it has expired meanwhile */
    self->expires_ns = expires_ns;
    self->extensions++;
    if (states) env_tell_validity(env, stated_ns(env, rule, expires_ns));
    return OUTCOME_OK;
}

enum outcome redlock_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    struct tally tally =
        majority_ask_for(ENV_ASKED_RELEASE, lock, lock->env, node_limit_ms(lock), set_nx_px_release_on);
    return majority_outcome(&tally);
}

enum outcome redlock_renew(struct lock *lock) {
    return redlock_extend(lock, lock->env);
}

const struct lock_type LOCK_REDLOCK = {
    .name = "redlock",
    .summary = "SET NX PX on a majority of five independent nodes, with a validity that the client keeps to",
    .explanation =
        "The client sets the key with its random value on every node in turn, waiting for each at most 5 % of the\n"
        "lease. It holds the lock if a majority accepted and lease - elapsed - drift (1 % + 2 ms) is positive by\n"
        "its monotonic clock. Otherwise it deletes what it set on all nodes and tries again after a random 50 to\n"
        "250 ms. A grant states until when it is valid; it can be extended within that time, on a majority, at most\n"
        "ten times.\n"
        "Promises: one client whose grant is valid, as long as clocks run at about the same rate, no node forgets,\n"
        "and pauses end before the check; two of five nodes may be lost.\n"
        "Costs: 5 commands to acquire, 5 scripts to release, 10 commands for each refused try.\n"
        "Breaks: a pause or a delay after the check ends past the validity, and the late write is made all the\n"
        "same: it carries nothing by which the resource could recognise it (no fencing token). A node whose clock\n"
        "jumps, or that comes back without its data, votes twice.",
    .source =
        "redis.io, Distributed Locks with Redis, \"The Redlock algorithm\"; delays and node limit as in redsync v4",
    REDLOCK_FIELDS,
    .variant = &REDLOCK_RULE,
};
