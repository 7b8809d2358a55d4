#include "harness/client/live_resource.h"

#include "harness/environment/env_reply.h"

static void live_resource_reply_drop(struct live_resource *resource) {
    env_reply_free(&resource->reply);
    resource->reply = (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
    if (resource->raw) freeReplyObject(resource->raw);
    resource->raw = NULL;
}

static const struct env_reply *live_resource_exchange(void *holder, const char *command, size_t length) {
    struct live_resource *resource = holder;
    live_resource_reply_drop(resource);
    resource->raw = redis_session_ask(&resource->session, command, length, resource->task.reply_limit_ns, false);
    if (resource->raw) env_reply_fill(&resource->reply, resource->raw);
    return &resource->reply;
}

struct resource_connection live_resource_open(struct live_resource *resource, const struct live_task *task,
                                              const char *address) {
    *resource = (struct live_resource){.task = *task};
    resource->session = (struct redis_session){.task = &resource->task, .address = address};
    return (struct resource_connection){live_resource_exchange, resource};
}

void live_resource_close(struct live_resource *resource) {
    live_resource_reply_drop(resource);
    redis_session_close(&resource->session);
}
