#include "faults/proxy/proxy.h"

#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/clock.h"

/* --- what is due --- */

int64_t proxy_now_ns(const struct proxy *proxy) {
    return shared_page_mono_ns(proxy->actor.page);
}

/* Announces the earliest moment, which may have changed. */
static void publish(struct timer_heap *timers) {
    struct proxy *proxy = (void *)((char *)timers - offsetof(struct proxy, timers));
    int64_t next_ns = timer_heap_next_ns(timers);
    if (proxy->actor.page->time == HISTORY_TIME_VIRTUAL) {
        atomic_store_explicit(&proxy->actor.page->proxy_deadline_ns, next_ns, memory_order_release);
        return;
    }
    ev_timer_stop(proxy->loop, &proxy->due);
    if (next_ns == TIMER_HEAP_NEVER) return;
    int64_t after_ns = next_ns - proxy_now_ns(proxy);
    ev_timer_set(&proxy->due, after_ns > 0 ? (double)after_ns / (double)CLOCK_NS_PER_S : 0, 0);
    ev_timer_start(proxy->loop, &proxy->due);
}

/* The loop caches the time, so its timer may fire a little early: then it is set again. */
static void on_timer(struct ev_loop *loop, ev_timer *timer, int events) {
    struct proxy *proxy = timer->data;
    (void)loop, (void)events;
    timer_heap_deliver(&proxy->timers, proxy_now_ns(proxy));
    publish(&proxy->timers);
}

/* --- beginning and end --- */

void proxy_open(struct proxy *proxy) {
    proxy->buffer = malloc(MESSAGE_HEAD + READ_SIZE);
    proxy->loop = ev_default_loop(EVFLAG_AUTO);
    if (!proxy->buffer || !proxy->loop) abort();
    ev_timer_init(&proxy->due, on_timer, 0, 0);
    proxy->due.data = proxy;
    proxy->timers.changed = publish;
    publish(&proxy->timers);
}

void proxy_close(struct proxy *proxy) {
    proxy->timers.count = 0;
    publish(&proxy->timers);
    timer_heap_close(&proxy->timers);
    free(proxy->buffer);
    ev_loop_destroy(proxy->loop);
    actor_close(&proxy->actor);
}

uint32_t proxy_text(struct proxy *proxy, const char *text) {
    int64_t wall_ns = shared_page_wall_ns(proxy->actor.page);
    return history_text(proxy->actor.history, text, strlen(text), proxy_now_ns(proxy), wall_ns);
}

void proxy_link_add_activity(struct proxy_link *link, enum target_activity activity) {
    if (link->activity < activity) link->activity = activity;
}
