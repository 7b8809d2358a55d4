#include "harness/environment/env_reply.h"

#include <stdlib.h>

void env_reply_free(const struct env_reply *reply) {
    for (size_t each = 0; each < reply->count; each++) env_reply_free(&reply->items[each]);
    free((void *)(uintptr_t)reply->items);
}

void env_reply_drop(struct env_reply *reply, redisReply **raw) {
    env_reply_free(reply);
    *reply = (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
    freeReplyObject(*raw);
    *raw = NULL;
}

void env_reply_fill(struct env_reply *reply, const redisReply *raw) {
    static const enum env_reply_kind kinds[] = {
        [REDIS_REPLY_STRING] = ENV_REPLY_STRING,   [REDIS_REPLY_ARRAY] = ENV_REPLY_ARRAY,
        [REDIS_REPLY_INTEGER] = ENV_REPLY_INTEGER, [REDIS_REPLY_NIL] = ENV_REPLY_NIL,
        [REDIS_REPLY_STATUS] = ENV_REPLY_STATUS,   [REDIS_REPLY_ERROR] = ENV_REPLY_ERROR,
    };
    bool known = raw->type > 0 && (size_t)raw->type < sizeof kinds / sizeof kinds[0];
    *reply = (struct env_reply){.kind = known ? kinds[raw->type] : ENV_REPLY_UNKNOWN,
                                .integer = raw->integer,
                                .text = raw->str,
                                .length = raw->str ? (size_t)raw->len : 0};
    if (reply->kind != ENV_REPLY_ARRAY || raw->elements == 0) return;
    struct env_reply *items = calloc(raw->elements, sizeof *items);
    if (!items) abort();
    for (size_t each = 0; each < raw->elements; each++) env_reply_fill(&items[each], raw->element[each]);
    reply->items = items;
    reply->count = raw->elements;
}
