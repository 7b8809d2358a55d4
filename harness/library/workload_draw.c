#include "harness/library/library_world.h"

#include <stdio.h>
#include <string.h>

/* What version 3 adds has streams of its own: what version 2 draws stays as it was. */
enum { RANDOM_STREAM = 2000, RANDOM_STREAM_3, RANDOM_STREAM_SETTINGS, RANDOM_STREAM_LONG };
enum { BLOCKS_MOST = 2, DEPTH_MOST = 3, OBJECTS_MOST = 2, PARTS = 100, LONG_HOLD_LEASES = 6 };
enum { MINUTE_MS = 60000, MINUTES_OF = 32, STRANGERS_OF = 8 };

struct draw {
    struct workload *workload;
    const struct library_offer *offer;
    struct random random;
    int64_t lease_ms;
    int resources;
    const struct library_form *form; /* of the last acquire */
    /* What the first acquire of a lock object said holds for the object, where the library says so. */
    struct {
        bool known;
        int form;
        struct call call;
    } objects[WORKLOAD_CLIENTS][2 * OBJECTS_MOST];
};

static bool chance(struct draw *draw, int percent) {
    return (int)random_below(&draw->random, PARTS) < percent;
}

static int below(struct draw *draw, int bound) {
    return (int)random_below(&draw->random, (uint64_t)bound);
}

/* One of the bits that are set. */
static int bit_drawn(struct draw *draw, unsigned bits) {
    int count = __builtin_popcount(bits), taken = below(draw, count);
    for (int bit = 0;; bit++)
        if (bits >> bit & 1 && taken-- == 0) return bit;
}

/* A share of the lease out of these percentages, rounded up to the unit. */
static int64_t share_ms(struct draw *draw, const int *percents, int count, int64_t unit_ms) {
    int64_t time_ms = draw->lease_ms * percents[below(draw, count)] / 100;
    return (time_ms + unit_ms - 1) / unit_ms * unit_ms;
}

/* --- one acquire --- */

/* Whether the library renews leases by itself: one that is over before it would have done so is drawn, too. */
static bool renews_itself(const struct library_offer *offer) {
    for (int form = 0; form < offer->form_count; form++)
        if (offer->forms[form].leases >> LEASE_RENEWED & 1) return true;
    return false;
}

static void lease_draw(struct draw *draw, const struct library_form *form, struct call *call) {
    static const int SHARES[] = {100, 100, 50, 73, 200, 1000}; /* 73 of 2 s: no whole number of seconds */
    static const int BESIDE_WATCHDOG[] = {100, 20, 50, 73, 200, 1000};
    const int *shares = renews_itself(draw->offer) ? BESIDE_WATCHDOG : SHARES;
    call->lease = (enum call_lease)bit_drawn(draw, form->leases);
    if (call->lease == LEASE_GIVEN) call->lease_ms = share_ms(draw, shares, 6, form->lease_unit_ms);
}

static void wait_draw(struct draw *draw, const struct library_form *form, struct call *call) {
    static const int SHARES[] = {10, 50, 120, 300, 300};
    call->wait = (enum call_wait)bit_drawn(draw, form->waits);
    call->wait_ms = call->wait == WAIT_FOREVER ? -1 : 0;
    if (call->wait == WAIT_TIME) call->wait_ms = share_ms(draw, SHARES, 5, form->wait_unit_ms);
}

/* What the first acquire of a lock object said, where that holds for all of them. */
static void of_object_take(const struct library_offer *offer, const struct call *first, struct call *call) {
    if (offer->lease_of_object) {
        call->lease = first->lease;
        call->lease_ms = first->lease_ms;
    }
    if (offer->wait_of_object) {
        call->wait = first->wait;
        call->wait_ms = first->wait_ms;
    }
}

static bool form_has(const struct library_form *form, const struct call *call) {
    return form->leases >> call->lease & 1 && form->waits >> call->wait & 1;
}

static void acquire_draw(struct draw *draw, struct planned_call *planned) {
    const struct library_offer *offer = draw->offer;
    struct call *call = &planned->call;
    int object = call->lock, form = below(draw, offer->form_count);
    bool known = draw->objects[call->client][object].known;
    const struct call *first = &draw->objects[call->client][object].call;
    if (known && offer->form_of_object) form = draw->objects[call->client][object].form;
    lease_draw(draw, &offer->forms[form], call);
    wait_draw(draw, &offer->forms[form], call);
    if (known) of_object_take(offer, first, call);
    for (int tries = 0; known && !form_has(&offer->forms[form], call) && tries < PARTS; tries++)
        form = below(draw, offer->form_count);
    if (known && !form_has(&offer->forms[form], call)) {
        form = draw->objects[call->client][object].form;
        call->lease = first->lease, call->lease_ms = first->lease_ms;
        call->wait = first->wait, call->wait_ms = first->wait_ms;
    }
    if (!known) draw->objects[call->client][object].call = *call;
    draw->objects[call->client][object].known = true;
    draw->objects[call->client][object].form = form;
    draw->form = &offer->forms[form];
    snprintf(planned->form, sizeof planned->form, "%s", offer->forms[form].name);
    if (offer->cancels && call->wait != WAIT_NONE && chance(draw, 20)) {
        static const int SHARES[] = {5, 60, 150};
        planned->cancel_after_ms = share_ms(draw, SHARES, 3, 1);
        if (planned->cancel_after_ms == 0) planned->cancel_after_ms = 1;
    }
}

/* --- blocks: acquire, something, release --- */

static void work_draw(struct draw *draw, int client, int thread, bool is_renewed) {
    static const int SHARES[] = {0, 2, 30, 90, 120}, RENEWED[] = {0, 2, 40, 120, 250};
    struct planned_call *work = workload_call_add(draw->workload, client, thread, CALL_WORK);
    if (work) work->work_ms = share_ms(draw, is_renewed ? RENEWED : SHARES, 5, 1);
    if (work && work->work_ms == 0) draw->workload->threads[workload_thread_number(client, thread)].count--;
}

/* The mode of an acquire within one of that mode; -1: none may be asked for. */
static int nested_mode(struct draw *draw, enum call_mode outer) {
    const struct library_facts *facts = &draw->offer->facts;
    bool reads = outer == MODE_WRITE && facts->write_reads && draw->offer->modes >> MODE_READ & 1;
    if (reads && (!facts->reenters || chance(draw, 50))) return MODE_READ;
    return facts->reenters && outer != MODE_PERMIT ? (int)outer : -1;
}

static struct planned_call *lock_call(struct draw *draw, const struct call *of, enum call_verb verb,
                                      enum call_mode mode) {
    struct planned_call *call = workload_call_add(draw->workload, of->client, of->thread, verb);
    if (!call) return NULL;
    call->call.lock = of->lock;
    call->call.resource = of->resource;
    call->call.mode = mode;
    return call;
}

static bool has_room(const struct draw *draw, int client, int thread, int depth) {
    return draw->workload->threads[workload_thread_number(client, thread)].count + 4 + 2 * depth < WORKLOAD_CALLS;
}

static void block_draw(struct draw *draw, const struct call *where, enum call_mode mode, int depth);

static void body_draw(struct draw *draw, const struct call *acquired, enum call_mode mode, int depth) {
    bool is_renewed = acquired->lease == LEASE_RENEWED || acquired->lease == LEASE_ENDLESS;
    const struct library_form *form = draw->form;
    int nested = nested_mode(draw, mode);
    if (chance(draw, 40)) work_draw(draw, acquired->client, acquired->thread, is_renewed);
    if (nested >= 0 && depth < DEPTH_MOST && chance(draw, 40) &&
        has_room(draw, acquired->client, acquired->thread, depth))
        block_draw(draw, acquired, (enum call_mode)nested, depth + 1);
    if (form->renews && !is_renewed && chance(draw, 15)) {
        struct planned_call *renew = lock_call(draw, acquired, CALL_RENEW, mode);
        if (renew) renew->call.lease = acquired->lease, renew->call.lease_ms = acquired->lease_ms;
    }
    if (form->answers_is_held && chance(draw, 15)) lock_call(draw, acquired, CALL_IS_HELD, mode);
    if (chance(draw, 60)) work_draw(draw, acquired->client, acquired->thread, is_renewed);
}

static void block_draw(struct draw *draw, const struct call *where, enum call_mode mode, int depth) {
    struct planned_call *acquire = lock_call(draw, where, CALL_ACQUIRE, mode);
    if (!acquire) return;
    acquire_draw(draw, acquire);
    struct call acquired = acquire->call;
    body_draw(draw, &acquired, mode, depth);
    lock_call(draw, &acquired, CALL_RELEASE, mode);
}

/* --- settings --- */

void settings_draw(const struct library_offer *offer, uint64_t seed, char settings[WORKLOAD_SETTINGS]) {
    struct random random = random_split(seed, RANDOM_STREAM_SETTINGS);
    size_t used = 0;
    settings[0] = '\0';
    if (random_below(&random, 2) == 0) return;
    for (const struct library_setting *each = offer->settings; each < offer->settings + offer->setting_count; each++) {
        const char *value = each->values[random_below(&random, (uint64_t)each->count)];
        if (used + strlen(each->name) + strlen(value) + 3 > WORKLOAD_SETTINGS) return;
        used += (size_t)sprintf(settings + used, "%s%s=%s", used ? " " : "", each->name, value);
    }
}

/* --- threads --- */

static void thread_draw(struct draw *draw, int client, int thread) {
    int blocks = 1 + below(draw, BLOCKS_MOST);
    if (chance(draw, 30)) work_draw(draw, client, thread, false);
    for (; blocks > 0 && has_room(draw, client, thread, 1); blocks--) {
        bool own = draw->offer->facts.owner == OWNER_OBJECT; /* whose objects are not for two threads at once */
        int object = own ? thread % OBJECTS_MOST : chance(draw, 25) ? 1 : 0;
        struct call where = {
            .client = client, .thread = thread, .resource = chance(draw, 15) ? draw->resources - 1 : 0};
        /* An object is made for one resource: those of the second resource have numbers of their own. */
        where.lock = object + OBJECTS_MOST * where.resource;
        if (draw->offer->answers_is_held && draw->objects[client][where.lock].known && chance(draw, 10))
            lock_call(draw, &where, CALL_IS_HELD, MODE_EXCLUSIVE);
        block_draw(draw, &where, (enum call_mode)bit_drawn(draw, draw->offer->modes), 1);
    }
}

/* --- what version 3 asks: calls whose context ends, and releases once more --- */

static bool is_of(unsigned verbs, const struct planned_call *planned) {
    return verbs >> planned->call.verb & 1;
}

static void endings_draw(struct draw *draw, struct planned_call *planned) {
    const struct library_offer *offer = draw->offer;
    bool over = chance(draw, planned->call.verb == CALL_ACQUIRE ? 5 : 12), cancelled = chance(draw, 20);
    int after = below(draw, 3);
    if (over && is_of(offer->asks_over, planned)) planned->call.over = true;
    else if (cancelled && is_of(offer->cancels_of, planned)) planned->cancel_at = 1 + after;
}

/* The number of calls that it adds. */
static int asked_again_draw(struct draw *draw, struct workload_thread *thread, int release) {
    if (!chance(draw, 50) || thread->count == WORKLOAD_CALLS) return 0;
    struct planned_call *again = &thread->calls[release + 1];
    memmove(again + 1, again, (size_t)(thread->count++ - release - 1) * sizeof *again);
    *again = again[-1];
    again->call.over = false;
    again->call.again = true;
    again->cancel_at = 0;
    return 1;
}

/* A hold that goes on for long after a pause has cost the lock, so that a notice is due. */
static void long_hold_draw(struct draw *draw, struct workload_thread *thread, int acquire) {
    bool drawn = chance(draw, 30) && draw->offer->facts.loss_notice != LOSS_NOT_TOLD;
    if (!drawn || thread->calls[acquire].call.lease != LEASE_RENEWED) return;
    workload_match(draw->workload);
    for (int each = acquire; each < thread->calls[acquire].match; each++)
        if (thread->calls[each].call.verb == CALL_WORK) thread->calls[each].work_ms = LONG_HOLD_LEASES * draw->lease_ms;
}

/* Within a renewed hold of the first resource one of the second one, so that both are renewed at a time, and the first
 * goes on when the second has ended. Nobody asks for them in the other order. */
static void second_hold_draw(struct draw *draw, struct workload_thread *thread) {
    enum { CALLS = 4 };
    bool drawn = chance(draw, 30) && draw->offer->holds_two && thread->count + CALLS <= WORKLOAD_CALLS;
    for (int each = 0; drawn && each < thread->count; each++) {
        struct planned_call *outer = &thread->calls[each], *inner = outer + 1;
        if (outer->call.verb != CALL_ACQUIRE || outer->call.lease != LEASE_RENEWED || outer->call.resource != 0)
            continue;
        memmove(inner + CALLS, inner, (size_t)(thread->count - each - 1) * sizeof *inner);
        thread->count += CALLS;
        inner[0] = *outer;
        for (int call = 1; call < CALLS; call++) inner[call] = (struct planned_call){.call = outer->call};
        for (int call = 0; call < CALLS; call += 2) {
            inner[call].call.lock = outer->call.lock % OBJECTS_MOST + OBJECTS_MOST;
            inner[call].call.resource = 1;
            inner[call + 1].call.verb = CALL_WORK;
            inner[call + 1].work_ms = LONG_HOLD_LEASES * draw->lease_ms / 2;
        }
        inner[2].call.verb = CALL_RELEASE;
        return;
    }
}

static void version_3_draw(struct draw *draw) {
    for (int number = 0; number < WORKLOAD_THREADS_ALL; number++) {
        struct workload_thread *thread = &draw->workload->threads[number];
        second_hold_draw(draw, thread);
        for (int each = 0; each < thread->count; each++) {
            struct planned_call *planned = &thread->calls[each];
            endings_draw(draw, planned);
            if (planned->call.verb == CALL_ACQUIRE) long_hold_draw(draw, thread, each);
            if (planned->call.verb == CALL_RELEASE) each += asked_again_draw(draw, thread, each);
        }
    }
}

/* --- what is asked of a lock object while another one of the same thread holds --- */

static bool has_calls_of(const struct draw *draw, int client, int lock) {
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++) {
        const struct workload_thread *calls = &draw->workload->threads[workload_thread_number(client, thread)];
        for (int each = 0; each < calls->count; each++)
            if (calls->calls[each].call.verb != CALL_WORK && calls->calls[each].call.lock == lock) return true;
    }
    return false;
}

/* An object is acquired and released. Within the thread's next hold by another object of the same resource, it is asked
 * to release again, or whether it holds. */
static void stranger_draw(struct draw *draw) {
    enum { CALLS = 3 };
    const struct library_offer *offer = draw->offer;
    bool releases = !offer->facts.lenient_release && draw->offer->facts.permits <= 1;
    bool can = offer->facts.owner != OWNER_THREAD && (releases || offer->answers_is_held);
    if (below(draw, STRANGERS_OF) > 0 || !can) return;
    enum call_verb verb = releases && (!offer->answers_is_held || chance(draw, 50)) ? CALL_RELEASE : CALL_IS_HELD;
    int first = below(draw, WORKLOAD_THREADS_ALL);
    for (int number = 0; number < WORKLOAD_THREADS_ALL; number++) {
        struct workload_thread *thread = &draw->workload->threads[(first + number) % WORKLOAD_THREADS_ALL];
        for (int each = 0; each < thread->count && thread->count + CALLS <= WORKLOAD_CALLS; each++) {
            struct planned_call *acquire = &thread->calls[each];
            int other = acquire->call.lock ^ 1; /* OBJECTS_MOST are made for each resource */
            if (acquire->call.verb != CALL_ACQUIRE || has_calls_of(draw, acquire->call.client, other)) continue;
            memmove(acquire + 1 + CALLS, acquire + 1, (size_t)(thread->count - each - 1) * sizeof *acquire);
            thread->count += CALLS;
            acquire[1] = acquire[3] = (struct planned_call){.call = acquire->call};
            acquire[2] = acquire[0];
            acquire[0].call.lock = acquire[1].call.lock = acquire[3].call.lock = other;
            acquire[1].call.verb = CALL_RELEASE;
            acquire[3].call.verb = verb;
            return;
        }
    }
}

/* --- a hold of a minute or two: idle timeouts and the like are often a minute --- */

static bool can_last(const struct planned_call *planned) {
    bool lasts = planned->call.lease == LEASE_RENEWED || planned->call.lease == LEASE_ENDLESS;
    return planned->call.verb == CALL_ACQUIRE && lasts && !planned->call.over;
}

/* Seldom, since everything else goes on meanwhile. */
static void minutes_draw(struct draw *draw) {
    struct workload_thread *threads = draw->workload->threads;
    if (below(draw, MINUTES_OF) > 0) return;
    int first = below(draw, WORKLOAD_THREADS_ALL);
    for (int number = 0; number < WORKLOAD_THREADS_ALL; number++) {
        struct workload_thread *thread = &threads[(first + number) % WORKLOAD_THREADS_ALL];
        for (int each = 0; each < thread->count && thread->count < WORKLOAD_CALLS; each++) {
            struct planned_call *acquire = &thread->calls[each], *work = acquire + 1;
            if (!can_last(acquire)) continue;
            memmove(work + 1, work, (size_t)(thread->count++ - each - 1) * sizeof *work);
            *work = (struct planned_call){.call = acquire->call, .work_ms = MINUTE_MS + below(draw, MINUTE_MS + 1)};
            work->call.verb = CALL_WORK;
            return;
        }
    }
}

void workload_draw(struct workload *workload, const struct library_offer *offer, int64_t lease_ms, uint64_t seed) {
    struct draw draw = {
        .workload = workload, .offer = offer, .random = random_split(seed, RANDOM_STREAM), .lease_ms = lease_ms};
    memset(workload, 0, sizeof *workload);
    workload->clients = chance(&draw, 75) ? 2 : 3;
    draw.resources = chance(&draw, 85) ? 1 : 2;
    for (int client = 0; client < workload->clients; client++) {
        int threads = offer->threads > 1 && chance(&draw, 30) ? 2 : 1;
        for (int thread = 0; thread < threads; thread++) thread_draw(&draw, client, thread);
    }
    draw.random = random_split(seed, RANDOM_STREAM_3);
    if (offer->protocol > 2) version_3_draw(&draw);
    draw.random = random_split(seed, RANDOM_STREAM_LONG);
    minutes_draw(&draw);
    stranger_draw(&draw);
    workload_match(workload);
}
