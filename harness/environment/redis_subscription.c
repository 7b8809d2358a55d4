#include "harness/environment/redis_subscription.h"

void redis_subscription_close(struct redis_subscription *self) {
    redis_push_clear(&self->pushes);
    redis_session_close(&self->session);
}

/* Messages that come before the confirmation are kept. */
enum outcome redis_subscription_change(struct redis_subscription *self, const char *verb, const char *channel,
                                       size_t length) {
    char *command = NULL;
    bool connected = redis_session_connect(&self->session);
    int bytes = redisFormatCommand(&command, "%s %b", verb, channel, length);
    bool asked = connected && bytes > 0;
    if (asked) redis_session_send(&self->session, command, (size_t)bytes);
    int64_t deadline_ns = live_task_deadline_ns(self->session.task, self->session.task->reply_limit_ns);
    redisFreeCommand(command);
    while (asked) {
        redisReply *reply = redis_session_receive(&self->session, deadline_ns, deadline_ns, false);
        if (!reply) break;
        if (redis_push_is(reply, "message")) {
            redis_push_keep(&self->pushes, reply);
            continue;
        }
        bool confirmed = redis_push_is(reply, verb);
        freeReplyObject(reply);
        if (confirmed) return OUTCOME_OK;
        break;
    }
    redis_subscription_close(self);
    return OUTCOME_UNKNOWN;
}

void redis_subscription_end(struct redis_subscription *self, const char *channel, size_t length) {
    if (self->session.context) (void)redis_subscription_change(self, "UNSUBSCRIBE", channel, length);
    redis_push_clear(&self->pushes);
}

static redisReply *next_push(struct redis_subscription *self, int64_t deadline_ns) {
    redisReply *kept = redis_push_take(&self->pushes);
    if (kept || !self->session.context) return kept;
    return redis_session_receive(&self->session, deadline_ns, deadline_ns, true);
}

/* A wait that ended before its deadline without a push: the connection is lost. */
redisReply *redis_subscription_message(struct redis_subscription *self, int64_t deadline_ns) {
    redisReply *push;
    while ((push = next_push(self, deadline_ns)) && !redis_push_is(push, "message")) freeReplyObject(push);
    if (!push && live_task_mono_ns(self->session.task) < deadline_ns) redis_subscription_close(self);
    return push;
}
