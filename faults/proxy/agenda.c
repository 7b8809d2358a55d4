#include "faults/proxy/agenda.h"

#include <stdlib.h>

#include "harness/clock.h"

static bool is_before(const struct agenda_entry *one, const struct agenda_entry *other) {
    if (one->due_ns != other->due_ns) return one->due_ns < other->due_ns;
    return one->order < other->order;
}

static void put(struct agenda *agenda, size_t place, struct agenda_entry *entry) {
    agenda->heap[place] = entry;
    entry->place = place;
}

/* Moves an entry up or down from a free place to where it belongs. */
static void sift(struct agenda *agenda, size_t place, struct agenda_entry *entry) {
    while (place > 1 && is_before(entry, agenda->heap[place / 2])) {
        put(agenda, place, agenda->heap[place / 2]);
        place /= 2;
    }
    for (size_t child; (child = place * 2) <= agenda->count; place = child) {
        if (child < agenda->count && is_before(agenda->heap[child + 1], agenda->heap[child])) child++;
        if (!is_before(agenda->heap[child], entry)) break;
        put(agenda, place, agenda->heap[child]);
    }
    put(agenda, place, entry);
}

int64_t agenda_next_ns(const struct agenda *agenda) {
    return agenda->count ? agenda->heap[1]->due_ns : AGENDA_NEVER;
}

/* The earliest moment may have changed. */
static void publish(struct agenda *agenda) {
    int64_t next_ns = agenda_next_ns(agenda);
    if (agenda->stage->time == HISTORY_TIME_VIRTUAL) {
        atomic_store_explicit(&agenda->stage->proxy_deadline_ns, next_ns, memory_order_release);
        return;
    }
    ev_timer_stop(agenda->loop, &agenda->timer);
    if (next_ns == AGENDA_NEVER) return;
    int64_t after_ns = next_ns - stage_mono_ns(agenda->stage);
    ev_timer_set(&agenda->timer, after_ns > 0 ? (double)after_ns / CLOCK_NS_PER_S : 0, 0);
    ev_timer_start(agenda->loop, &agenda->timer);
}

/* The loop's idea of the time may be a little old, so the timer may come a little early: then it is set again. */
static void on_timer(struct ev_loop *loop, ev_timer *timer, int events) {
    struct agenda *agenda = timer->data;
    (void)loop;
    (void)events;
    agenda_deliver(agenda);
    publish(agenda);
}

void agenda_open(struct agenda *agenda, struct ev_loop *loop, struct stage *stage) {
    *agenda = (struct agenda){.loop = loop, .stage = stage};
    ev_timer_init(&agenda->timer, on_timer, 0, 0);
    agenda->timer.data = agenda;
    publish(agenda);
}

void agenda_close(struct agenda *agenda) {
    agenda->count = 0;
    publish(agenda);
    free(agenda->heap);
}

void agenda_set(struct agenda *agenda, struct agenda_entry *entry, int64_t due_ns) {
    if (entry->place && entry->due_ns == due_ns) return;
    int64_t before_ns = agenda_next_ns(agenda);
    entry->due_ns = due_ns;
    entry->order = agenda->orders++;
    if (!entry->place) {
        if (agenda->count + 1 >= agenda->room) {
            agenda->room = agenda->room ? agenda->room * 2 : 64;
            agenda->heap = realloc(agenda->heap, agenda->room * sizeof(struct agenda_entry *));
            if (!agenda->heap) abort();
        }
        entry->place = ++agenda->count;
    }
    sift(agenda, entry->place, entry);
    if (agenda_next_ns(agenda) != before_ns) publish(agenda);
}

void agenda_remove(struct agenda *agenda, struct agenda_entry *entry) {
    if (!entry->place) return;
    int64_t before_ns = agenda_next_ns(agenda);
    struct agenda_entry *last = agenda->heap[agenda->count--];
    if (last != entry) sift(agenda, entry->place, last);
    entry->place = 0;
    if (agenda_next_ns(agenda) != before_ns) publish(agenda);
}

size_t agenda_deliver(struct agenda *agenda) {
    size_t delivered = 0;
    int64_t now_ns = stage_mono_ns(agenda->stage);
    for (; agenda->count && agenda->heap[1]->due_ns <= now_ns; delivered++) {
        struct agenda_entry *entry = agenda->heap[1];
        agenda_remove(agenda, entry);
        entry->deliver(entry);
    }
    return delivered;
}
