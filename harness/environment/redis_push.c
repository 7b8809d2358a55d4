#include "harness/environment/redis_push.h"

#include <string.h>
#include <strings.h>

#include "harness/scheduler/grown.h"

bool redis_push_is(const redisReply *reply, const char *kind) {
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && reply->element[0]->type == REDIS_REPLY_STRING &&
           strcasecmp(reply->element[0]->str, kind) == 0;
}

void redis_push_keep(struct redis_push_buffer *buffer, redisReply *push) {
    buffer->pushes = grown(buffer->pushes, buffer->count + 1, &buffer->room, sizeof *buffer->pushes);
    buffer->pushes[buffer->count++] = push;
}

redisReply *redis_push_take(struct redis_push_buffer *buffer) {
    if (buffer->count == 0) return NULL;
    redisReply *first = buffer->pushes[0];
    memmove(buffer->pushes, buffer->pushes + 1, --buffer->count * sizeof *buffer->pushes);
    return first;
}

void redis_push_clear(struct redis_push_buffer *buffer) {
    for (size_t each = 0; each < buffer->count; each++) freeReplyObject(buffer->pushes[each]);
    free(buffer->pushes);
    *buffer = (struct redis_push_buffer){0};
}
