#include "faults/proxy/control.h"

#include <stdlib.h>

#include "faults/proxy/commands.h"
#include "faults/proxy/link.h"
#include "harness/resp_service/resp_service.h"

enum { ARGUMENTS_MAX = 64 };

/* A caller that sent SETTLE waits, and so do its requests behind it. The idle watcher has the lowest priority: it runs
 * when polling all sockets has found nothing to read, to write or to accept. */
struct control {
    struct resp_service service; /* first */
    struct proxy *proxy;
    ev_idle idle;
};

struct control_caller {
    struct resp_caller base; /* first */
    bool wants_targets;      /* it waits after SETTLE TARGETS */
};

static bool is_request(const redisReply *request) {
    if (request->type != REDIS_REPLY_ARRAY || request->elements == 0 || request->elements > ARGUMENTS_MAX) return false;
    for (size_t each = 0; each < request->elements; each++)
        if (request->element[each]->type != REDIS_REPLY_STRING) return false;
    return true;
}

static void control_serve(struct resp_caller *caller, const redisReply *request) {
    struct control *control = (struct control *)caller->service;
    struct span arguments[ARGUMENTS_MAX];
    if (!is_request(request)) {
        reply_error(&caller->reply, "a request is an array of 1 to %d strings", ARGUMENTS_MAX);
        return;
    }
    for (size_t each = 0; each < request->elements; each++)
        arguments[each] = (struct span){request->element[each]->str, request->element[each]->len};
    enum command_result result = command_run(control->proxy, arguments, request->elements, &caller->reply);
    caller->waits = result == COMMAND_SETTLE || result == COMMAND_TARGETS;
    caller->closing = result == COMMAND_QUIT || result == COMMAND_SHUTDOWN;
    ((struct control_caller *)caller)->wants_targets = result == COMMAND_TARGETS;
    if (caller->waits) ev_idle_start(control->service.loop, &control->idle);
    if (result == COMMAND_SHUTDOWN) ev_break(control->service.loop, EVBREAK_ALL);
}

static void reply_settled(struct proxy *proxy, const struct control_caller *caller, struct reply_text *reply) {
    int64_t next_ns = timer_heap_next_ns(&proxy->timers);
    size_t active = 0;
    for (struct proxy_link *link = proxy->links; link; link = link->next) active += link->activity != TARGET_IDLE;
    if (caller->wants_targets) reply_write(reply, "*%zu\r\n", 1 + 2 * active);
    reply_write(reply, ":%lld\r\n", next_ns == TIMER_HEAP_NEVER ? -1LL : (long long)next_ns);
    for (struct proxy_link *link = proxy->links; caller->wants_targets && link; link = link->next) {
        if (link->activity == TARGET_IDLE) continue;
        reply_bulk(reply, link->target.text);
        reply_write(reply, ":%d\r\n", link->activity == TARGET_HAS_CONNECTION);
        link->activity = TARGET_IDLE;
    }
}

/* Nothing is left to read or write. What has become due is delivered first, and then the sockets are polled again. */
static void on_idle(struct ev_loop *loop, ev_idle *idle, int events) {
    struct control *control = idle->data;
    struct proxy *proxy = control->proxy;
    (void)events;
    if (link_step_all(proxy) || timer_heap_deliver(&proxy->timers, proxy_now_ns(proxy))) return;
    ev_idle_stop(loop, idle);
    for (struct resp_caller *next, *each = control->service.callers; each; each = next) {
        next = each->next;
        if (!each->waits) continue;
        each->waits = false;
        reply_settled(proxy, (struct control_caller *)each, &each->reply);
        resp_caller_go_on(each);
    }
}

struct control *control_open(struct proxy *proxy, const char *path, struct address_error *error) {
    struct control *control = calloc(1, sizeof *control);
    if (!control) abort();
    control->proxy = proxy;
    control->service = (struct resp_service){
        .loop = proxy->loop, .caller_size = sizeof(struct control_caller), .serve = control_serve};
    ev_idle_init(&control->idle, on_idle);
    ev_set_priority(&control->idle, EV_MINPRI);
    control->idle.data = control;
    if (resp_service_open(&control->service, path, error)) return control;
    free(control);
    return NULL;
}

void control_close(struct control *control) {
    ev_idle_stop(control->proxy->loop, &control->idle);
    resp_service_close(&control->service);
    free(control);
}
