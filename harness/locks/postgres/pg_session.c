#include "harness/locks/postgres/pg_session.h"

#include <stdlib.h>
#include <string.h>

#include "harness/locks/common/key.h"

const struct poll_pace PG_PACE = {.first_ms = 50, .most_ms = 1000, .tries = 100};

static const char *const *parameter_of(const struct lock *lock) {
    return (const char *const *)&((const struct pg_session *)lock->state)->name;
}

void pg_session_open(struct lock *lock) {
    ((struct pg_session *)lock->state)->name =
        key_hexadecimal("\\x", lock->options.resource, lock->options.resource_length, "");
}

enum outcome pg_session_begin(struct lock *lock) {
    pg_session_open(lock);
    return pg_run(lock, "SELECT");
}

void pg_session_close(struct lock *lock) {
    free(((struct pg_session *)lock->state)->name);
}

const struct env_reply *pg_ask(struct lock *lock, const char *statement) {
    return env_query(lock->env, 0, statement, parameter_of(lock), 1);
}

const struct env_reply *pg_ask_blocking(struct lock *lock, const char *statement) {
    return env_query_blocking(lock->env, 0, statement, parameter_of(lock), 1);
}

enum outcome pg_outcome(const struct env_reply *reply) {
    if (reply->kind == ENV_REPLY_UNKNOWN) return OUTCOME_UNKNOWN;
    return reply->kind == ENV_REPLY_ERROR ? OUTCOME_REFUSED : OUTCOME_OK;
}

enum outcome pg_run(struct lock *lock, const char *statement) {
    return pg_outcome(env_query(lock->env, 0, statement, NULL, 0));
}

enum outcome pg_truth(const struct env_reply *reply) {
    if (pg_outcome(reply) != OUTCOME_OK) return pg_outcome(reply);
    if (reply->kind != ENV_REPLY_ARRAY || reply->count != 1) return OUTCOME_UNKNOWN;
    const struct env_reply *value = &reply->items[0].items[0];
    if (value->kind != ENV_REPLY_STRING) return OUTCOME_UNKNOWN;
    return strcmp(value->text, "t") == 0 ? OUTCOME_OK : OUTCOME_REFUSED;
}

enum outcome pg_rows(const struct env_reply *reply) {
    if (pg_outcome(reply) != OUTCOME_OK) return pg_outcome(reply);
    return reply->kind == ENV_REPLY_ARRAY && reply->count > 0 ? OUTCOME_OK : OUTCOME_REFUSED;
}

enum outcome pg_transaction_holds_row(struct lock *lock) {
    return pg_truth(env_query(lock->env, 0, "SELECT pg_current_xact_id_if_assigned() IS NOT NULL", NULL, 0));
}

enum outcome pg_advisory_is_held(struct lock *lock) {
    return pg_truth(
        pg_ask(lock, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
                     "AND pid = pg_backend_pid() AND classid::bigint << 32 | objid::bigint = " PG_ADVISORY_KEY ")"));
}
