"""Plug-ins that leave nothing behind when an acquire is refused, and the same with one mistake each."""

from pathlib import Path

from tests.helpers.planted_plugins import built_from

HEAD = """
#include <stdio.h>
#include <string.h>
#include "lockstorm.h"
#define RESOURCE lock->options.resource, lock->options.resource_length
struct state { char me[33]; };
static void draw(struct lock *lock) {
    struct state *self = lock->state;
    snprintf(self->me, sizeof self->me, "%016llx%016llx", (unsigned long long)env_random(lock->env),
             (unsigned long long)env_random(lock->env));
}
static enum outcome leave(struct lock *lock);
static enum outcome release(struct lock *lock) { return leave(lock); }
static struct lock_grant acquire(struct lock *lock, int64_t wait_ms);
const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
"""
FACE = """.capacity = 1, .waits = LOCK_WAITS_POLLING, .state_size = sizeof(struct state), .acquire = acquire,
    .release = release};
"""

# A list in which clients queue; the first one has the lock.
QUEUE = (
    HEAD
    + """
const struct lock_type lockstorm_lock = {.name = "queue", .summary = "a list", """
    + FACE
    + """
static enum outcome leave(struct lock *lock) {
    struct state *self = lock->state;
    const struct env_reply *reply = env_command(lock->env, 0, "LREM %b 0 %s", RESOURCE, self->me);
    if (reply->kind != ENV_REPLY_INTEGER) return OUTCOME_UNKNOWN;
    return reply->integer == 1 ? OUTCOME_OK : OUTCOME_REFUSED;
}
static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    struct state *self = lock->state;
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    draw(lock);
    const struct env_reply *reply = env_command(lock->env, 0, "RPUSH %b %s", RESOURCE, self->me);
    if (reply->kind != ENV_REPLY_INTEGER) return leave(lock), (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    for (;;) {
        reply = env_command(lock->env, 0, "LINDEX %b 0", RESOURCE);
        if (reply->kind == ENV_REPLY_STRING && strcmp(reply->text, self->me) == 0)
            return (struct lock_grant){.outcome = OUTCOME_OK};
        if (env_mono_ns(lock->env) >= until_ns) break;
        env_sleep(lock->env, 50);
    }
    (void)leave(lock);
    return (struct lock_grant){.outcome = OUTCOME_REFUSED};
}
"""
)

# A key on each of two servers.
PAIR = (
    HEAD
    + """
const struct lock_type lockstorm_lock = {.name = "pair", .summary = "a key on two servers", .nodes = 2,
    .traits = LOCK_TRAIT_LEASE, """
    + FACE
    + """
static const char DELETE[] = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
                             "return redis.call('del', KEYS[1])";
static enum outcome leave_on(struct lock *lock, int node) {
    struct state *self = lock->state;
    return script_outcome(env_command(lock->env, node, "EVAL %s 1 %b %s", DELETE, RESOURCE, self->me));
}
static enum outcome leave(struct lock *lock) {
    enum outcome one = leave_on(lock, 0), other = leave_on(lock, 1);
    return one == OUTCOME_OK ? other : one;
}
static enum outcome enter_on(struct lock *lock, int node) {
    struct state *self = lock->state;
    const struct env_reply *reply =
        env_command(lock->env, node, "SET %b %s NX PX %lld", RESOURCE, self->me, (long long)lock->options.lease_ms);
    if (reply->kind == ENV_REPLY_NIL) return OUTCOME_REFUSED;
    return reply->kind == ENV_REPLY_STATUS ? OUTCOME_OK : OUTCOME_UNKNOWN;
}
static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    for (;;) {
        draw(lock);
        enum outcome one = enter_on(lock, 0), other = enter_on(lock, 1);
        if (one == OUTCOME_OK && other == OUTCOME_OK) return (struct lock_grant){.outcome = OUTCOME_OK};
        (void)leave_on(lock, 0);
        (void)leave_on(lock, 1);
        if (one == OUTCOME_UNKNOWN && other == OUTCOME_UNKNOWN) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
        if (env_mono_ns(lock->env) >= until_ns) return (struct lock_grant){.outcome = OUTCOME_REFUSED};
        env_sleep(lock->env, 100 + (int64_t)env_random_below(lock->env, 100));
    }
}
"""
)

# A key, and a channel on which releases are announced.
CHANNEL = (
    HEAD
    + """
const struct lock_type lockstorm_lock = {.name = "channel", .summary = "a key and a channel",
    .traits = LOCK_TRAIT_LEASE, """
    + FACE
    + """
static enum outcome leave(struct lock *lock) {
    struct state *self = lock->state;
    static const char DELETE[] = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
                                 "redis.call('publish', 'freed', 1) return redis.call('del', KEYS[1])";
    return script_outcome(env_command(lock->env, 0, "EVAL %s 1 %b %s", DELETE, RESOURCE, self->me));
}
static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    struct state *self = lock->state;
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    draw(lock);
    if (env_subscribe(lock->env, 0, "freed", 5) != OUTCOME_OK) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    struct lock_grant grant = {.outcome = OUTCOME_REFUSED};
    for (;;) {
        const struct env_reply *reply = env_command(lock->env, 0, "SET %b %s NX PX %lld", RESOURCE, self->me,
                                                    (long long)lock->options.lease_ms);
        if (reply->kind == ENV_REPLY_STATUS) grant.outcome = OUTCOME_OK;
        else if (reply->kind != ENV_REPLY_NIL) (void)leave(lock);
        int64_t left_ns = until_ns - env_mono_ns(lock->env);
        if (grant.outcome == OUTCOME_OK || left_ns <= 0) break;
        (void)env_message(lock->env, 0, left_ns < 100000000 ? left_ns / ENV_NS_PER_MS + 1 : 100);
    }
    env_unsubscribe(lock->env, 0, "freed", 5);
    return grant;
}
"""
)

UNSUBSCRIBES = '    env_unsubscribe(lock->env, 0, "freed", 5);\n'
LEAVES = "    (void)leave(lock);\n"
DRAWS = "    draw(lock);\n"
# What each replaces in the right one.
TRACES: dict[str, tuple[str, dict[str, str]]] = {
    # who gives up keeps its place in the queue
    "place-kept": (QUEUE, {LEAVES: ""}),
    # the same, and each acquire removes all scripts of the server, those of others too
    "scripts-removed": (QUEUE, {LEAVES: "", DRAWS: DRAWS + '    (void)env_command(lock->env, 0, "SCRIPT FLUSH");\n'}),
    # after a refusal only the servers that said yes are released; one whose answer was lost keeps its key for a lease
    "unanswered-kept": (
        PAIR,
        {
            "(void)leave_on(lock, 0);": "if (one == OUTCOME_OK) leave_on(lock, 0);",
            "(void)leave_on(lock, 1);": "if (other == OUTCOME_OK) leave_on(lock, 1);",
        },
    ),
    # who gives up stays subscribed
    "subscription-kept": (CHANNEL, {UNSUBSCRIBES: "    if (grant.outcome == OUTCOME_OK)\n    " + UNSUBSCRIBES}),
}


def plugin_with_trace(directory: Path, mistake: str, *, planted: bool) -> str:
    """Compiles the plug-in with this mistake, or its right twin."""
    source, changes = TRACES[mistake]
    for old, new in changes.items() if planted else ():
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return built_from(source, directory, f"{mistake}-{'planted' if planted else 'right'}.so")
