#include "faults/proxy/timer_heap.h"

#include <stdlib.h>

#include "harness/scheduler/clock.h"

static bool is_before(const struct timer *one, const struct timer *other) {
    if (one->due_ns != other->due_ns) return one->due_ns < other->due_ns;
    return one->order < other->order;
}

static void put(struct timer_heap *heap, size_t place, struct timer *timer) {
    heap->timers[place] = timer;
    timer->place = place;
}

/* Moves a timer up or down from a free place to where it belongs. */
static void sift(struct timer_heap *heap, size_t place, struct timer *timer) {
    while (place > 1 && is_before(timer, heap->timers[place / 2])) {
        put(heap, place, heap->timers[place / 2]);
        place /= 2;
    }
    for (size_t child; (child = place * 2) <= heap->count; place = child) {
        if (child < heap->count && is_before(heap->timers[child + 1], heap->timers[child])) child++;
        if (!is_before(heap->timers[child], timer)) break;
        put(heap, place, heap->timers[child]);
    }
    put(heap, place, timer);
}

int64_t timer_heap_next_ns(const struct timer_heap *heap) {
    return heap->count ? heap->timers[1]->due_ns : TIMER_HEAP_NEVER;
}

/* Announces the earliest moment, which may have changed. */
static void publish(struct timer_heap *heap) {
    int64_t next_ns = timer_heap_next_ns(heap);
    if (heap->page->time == HISTORY_TIME_VIRTUAL) {
        atomic_store_explicit(&heap->page->proxy_deadline_ns, next_ns, memory_order_release);
        return;
    }
    ev_timer_stop(heap->loop, &heap->event);
    if (next_ns == TIMER_HEAP_NEVER) return;
    int64_t after_ns = next_ns - shared_page_mono_ns(heap->page);
    ev_timer_set(&heap->event, after_ns > 0 ? (double)after_ns / CLOCK_NS_PER_S : 0, 0);
    ev_timer_start(heap->loop, &heap->event);
}

/* The loop caches the time, so its timer may fire a little early: then it is set again. */
static void on_timer(struct ev_loop *loop, ev_timer *timer, int events) {
    struct timer_heap *heap = timer->data;
    (void)loop;
    (void)events;
    timer_heap_deliver(heap);
    publish(heap);
}

void timer_heap_open(struct timer_heap *heap, struct ev_loop *loop, struct shared_page *page) {
    *heap = (struct timer_heap){.loop = loop, .page = page};
    ev_timer_init(&heap->event, on_timer, 0, 0);
    heap->event.data = heap;
    publish(heap);
}

void timer_heap_close(struct timer_heap *heap) {
    heap->count = 0;
    publish(heap);
    free(heap->timers);
}

void timer_heap_set(struct timer_heap *heap, struct timer *timer, int64_t due_ns) {
    if (timer->place && timer->due_ns == due_ns) return;
    int64_t before_ns = timer_heap_next_ns(heap);
    timer->due_ns = due_ns;
    timer->order = heap->next_order++;
    if (!timer->place) {
        if (heap->count + 1 >= heap->capacity) {
            heap->capacity = heap->capacity ? heap->capacity * 2 : 64;
            heap->timers = realloc(heap->timers, heap->capacity * sizeof(struct timer *));
            if (!heap->timers) abort();
        }
        timer->place = ++heap->count;
    }
    sift(heap, timer->place, timer);
    if (timer_heap_next_ns(heap) != before_ns) publish(heap);
}

void timer_heap_remove(struct timer_heap *heap, struct timer *timer) {
    if (!timer->place) return;
    int64_t before_ns = timer_heap_next_ns(heap);
    struct timer *last = heap->timers[heap->count--];
    if (last != timer) sift(heap, timer->place, last);
    timer->place = 0;
    if (timer_heap_next_ns(heap) != before_ns) publish(heap);
}

size_t timer_heap_deliver(struct timer_heap *heap) {
    size_t delivered = 0;
    int64_t now_ns = shared_page_mono_ns(heap->page);
    for (; heap->count && heap->timers[1]->due_ns <= now_ns; delivered++) {
        struct timer *timer = heap->timers[1];
        timer_heap_remove(heap, timer);
        timer->deliver(timer);
    }
    return delivered;
}
