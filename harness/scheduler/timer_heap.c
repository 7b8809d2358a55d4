#include "harness/scheduler/timer_heap.h"

#include <stdbool.h>
#include <stdlib.h>

#include "harness/scheduler/grown.h"

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

static void note_change(struct timer_heap *heap, int64_t before_ns) {
    if (heap->changed && timer_heap_next_ns(heap) != before_ns) heap->changed(heap);
}

void timer_heap_close(struct timer_heap *heap) {
    free(heap->timers);
    *heap = (struct timer_heap){0};
}

void timer_heap_set(struct timer_heap *heap, struct timer *timer, int64_t due_ns) {
    if (timer->place && timer->due_ns == due_ns) return;
    int64_t before_ns = timer_heap_next_ns(heap);
    timer->due_ns = due_ns;
    timer->order = heap->next_order++;
    if (!timer->place) {
        timer->place = ++heap->count;
        heap->timers = grown(heap->timers, heap->count + 1, &heap->capacity, sizeof *heap->timers);
    }
    sift(heap, timer->place, timer);
    note_change(heap, before_ns);
}

void timer_heap_remove(struct timer_heap *heap, struct timer *timer) {
    if (!timer->place) return;
    int64_t before_ns = timer_heap_next_ns(heap);
    struct timer *last = heap->timers[heap->count--];
    if (last != timer) sift(heap, timer->place, last);
    timer->place = 0;
    note_change(heap, before_ns);
}

size_t timer_heap_deliver(struct timer_heap *heap, int64_t now_ns) {
    size_t delivered = 0;
    for (; heap->count && heap->timers[1]->due_ns <= now_ns; delivered++) {
        struct timer *timer = heap->timers[1];
        timer_heap_remove(heap, timer);
        timer->deliver(timer);
    }
    return delivered;
}
