#include "harness/locks/postgres/pg_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct poll_pace PG_PACE = {.first_ms = 50, .most_ms = 1000, .tries = 100};

char *pg_name(const struct lock_options *options) {
    char *name = malloc(2 * options->resource_length + sizeof "\\x");
    if (!name) abort();
    char *end = name + sprintf(name, "\\x");
    for (size_t each = 0; each < options->resource_length; each++)
        end += sprintf(end, "%02x", (unsigned)(unsigned char)options->resource[each]);
    return name;
}

const struct env_reply *pg_ask(struct lock *lock, const char *name, const char *statement) {
    return env_query(lock->env, 0, statement, &name, 1);
}

const struct env_reply *pg_ask_blocking(struct lock *lock, const char *name, const char *statement) {
    return env_query_blocking(lock->env, 0, statement, &name, 1);
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
