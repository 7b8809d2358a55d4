#include "harness/library_search/library_shrink.h"

#include <stdlib.h>
#include <string.h>

struct library_shrinking {
    struct library_search *search;
    uint64_t seed;
    uint32_t wanted; /* promises */
    struct library_schedule trial;
    int64_t runs_left;
};

/* Plays the trial. If it breaks a wanted promise, what was played of it is the best schedule. */
static bool library_shrink_try(struct library_shrinking *shrink) {
    struct library_search *search = shrink->search;
    if (shrink->runs_left-- <= 0) return false;
    struct library_outcome outcome = library_search_replay(search, &shrink->trial, shrink->seed, false, NULL);
    if (!outcome.played || !(outcome.promises & shrink->wanted)) return false;
    search->found = search->schedule;
    search->found_outcome = outcome;
    return true;
}

/* --- deviations: delta debugging (Zeller 1999) --- */

static void library_trial_without(struct library_shrinking *shrink, int from, int length) {
    const struct library_schedule *best = &shrink->search->found;
    shrink->trial = *best;
    shrink->trial.count = 0;
    for (int each = 0; each < best->count; each++)
        if (each < from || each >= from + length)
            shrink->trial.deviations[shrink->trial.count++] = best->deviations[each];
}

static bool library_shrink_deviations(struct library_shrinking *shrink) {
    bool smaller = false;
    for (int length = shrink->search->found.count; length > 0; length /= 2) {
        for (int from = 0; from < shrink->search->found.count && shrink->runs_left > 0;) {
            library_trial_without(shrink, from, length);
            if (library_shrink_try(shrink)) smaller = true;
            else from += length;
        }
    }
    return smaller;
}

/* --- calls --- */

static void call_remove(struct workload_thread *thread, int place) {
    thread->count--;
    memmove(&thread->calls[place], &thread->calls[place + 1],
            (size_t)(thread->count - place) * sizeof thread->calls[0]);
}

/* Takes a call away, an acquire with its release. */
static void calls_remove(struct workload *workload, int client, int thread, int place) {
    struct workload_thread *of = &workload->threads[client][thread];
    int match = of->calls[place].call.verb == CALL_ACQUIRE ? of->calls[place].match : -1;
    if (match >= 0) call_remove(of, match);
    call_remove(of, place);
    workload_match(workload);
}

static bool shrink_threads(struct library_shrinking *shrink) {
    const struct workload *best = &shrink->search->found.workload;
    for (int client = best->clients - 1; client >= 0; client--)
        for (int thread = WORKLOAD_THREADS - 1; thread >= 0; thread--) {
            if (best->threads[client][thread].count == 0) continue;
            shrink->trial = shrink->search->found;
            shrink->trial.workload.threads[client][thread].count = 0;
            if (library_shrink_try(shrink)) return true;
        }
    return false;
}

/* The release of an acquire goes with it, and not by itself. */
static bool stands_alone(const struct workload_thread *thread, int place) {
    for (int each = 0; each < place; each++)
        if (thread->calls[each].match == place) return false;
    return true;
}

static bool shrink_calls(struct library_shrinking *shrink) {
    bool smaller = false;
    for (int client = 0; client < WORKLOAD_CLIENTS; client++)
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
            for (int place = shrink->search->found.workload.threads[client][thread].count - 1; place >= 0; place--) {
                const struct workload_thread *of = &shrink->search->found.workload.threads[client][thread];
                if (place >= of->count || !stands_alone(of, place)) continue;
                shrink->trial = shrink->search->found;
                calls_remove(&shrink->trial.workload, client, thread, place);
                smaller |= library_shrink_try(shrink);
            }
    return smaller;
}

/* The last clients that make no calls are left out. */
static bool library_shrink_clients(struct library_shrinking *shrink) {
    int clients = shrink->search->found.workload.clients;
    if (clients < 2 || workload_threads(&shrink->search->found.workload, clients - 1) > 0) return false;
    shrink->trial = shrink->search->found;
    shrink->trial.workload.clients--;
    return library_shrink_try(shrink);
}

/* --- numbers --- */

static bool number_try(struct library_shrinking *shrink, int64_t *number, int64_t value) {
    int64_t before = *number;
    if (before == value) return false;
    *number = value; /* in shrink->trial */
    return library_shrink_try(shrink);
}

/* In the trial. What the first acquire of a lock object says holds for the object, where the library has it so. */
static bool lease_try(struct library_shrinking *shrink, const struct planned_call *call, int64_t lease_ms) {
    if (call->call.lease_ms == lease_ms) return false;
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++) {
        struct workload_thread *of = &shrink->trial.workload.threads[call->call.client][thread];
        for (int each = 0; each < of->count; each++) {
            bool same = &of->calls[each] == call ||
                        (shrink->search->world->offer.lease_of_object && of->calls[each].call.lock == call->call.lock);
            if (same && of->calls[each].call.lease == LEASE_GIVEN) of->calls[each].call.lease_ms = lease_ms;
        }
    }
    return library_shrink_try(shrink);
}

static bool shrink_call_numbers(struct library_shrinking *shrink, int client, int thread, int place) {
    struct planned_call *call = &shrink->trial.workload.threads[client][thread].calls[place];
    int64_t lease_ms = shrink->search->world->settings.lease_ms;
    shrink->trial = shrink->search->found;
    if (call->cancel_after_ms > 0 && number_try(shrink, &call->cancel_after_ms, 0)) return true;
    shrink->trial = shrink->search->found;
    if (call->call.lease == LEASE_GIVEN && call->call.verb == CALL_ACQUIRE && lease_try(shrink, call, lease_ms))
        return true;
    shrink->trial = shrink->search->found;
    int64_t whole = (call->work_ms + lease_ms - 1) / lease_ms * lease_ms;
    return call->call.verb == CALL_WORK && number_try(shrink, &call->work_ms, whole);
}

static bool shrink_numbers(struct library_shrinking *shrink) {
    bool rounder = false;
    for (int client = 0; client < WORKLOAD_CLIENTS; client++)
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
            for (int place = 0; place < shrink->search->found.workload.threads[client][thread].count; place++)
                rounder |= shrink_call_numbers(shrink, client, thread, place);
    return rounder;
}

static bool library_shrink_amounts(struct library_shrinking *shrink) {
    int64_t lease_ms = shrink->search->world->settings.lease_ms;
    for (int each = 0; each < shrink->search->found.count; each++) {
        int64_t amount = shrink->search->found.deviations[each].instead.amount;
        if (amount <= lease_ms * 2) continue;
        shrink->trial = shrink->search->found;
        shrink->trial.deviations[each].instead.amount = amount / 2;
        if (library_shrink_try(shrink)) return true;
    }
    return false;
}

static bool breaks_anew(struct library_shrinking *shrink) {
    struct library_schedule best = shrink->search->found;
    struct library_outcome outcome = library_search_replay(shrink->search, &best, shrink->seed, true, NULL);
    bool breaks = outcome.played && outcome.promises & shrink->wanted;
    if (breaks) shrink->search->found_outcome = outcome, shrink->search->found = shrink->search->schedule;
    return breaks;
}

void library_shrink(struct library_search *search, uint64_t seed, bool *anew) {
    struct library_shrinking *shrink = calloc(1, sizeof *shrink);
    struct library_schedule *first = malloc(sizeof *first);
    struct library_outcome first_outcome = search->found_outcome;
    if (!shrink || !first) abort();
    *first = search->found;
    *shrink = (struct library_shrinking){.search = search,
                                         .seed = seed,
                                         .wanted = search->found_outcome.promises,
                                         .runs_left = search->settings->shrink_runs};
    *anew = breaks_anew(shrink);
    while (*anew && shrink->runs_left > 0 &&
           (shrink_threads(shrink) || library_shrink_clients(shrink) || library_shrink_deviations(shrink) ||
            shrink_calls(shrink) || shrink_numbers(shrink) || library_shrink_amounts(shrink)))
        continue;
    if (*anew && !breaks_anew(shrink)) {
        search->found = *first;
        search->found_outcome = first_outcome;
        *anew = breaks_anew(shrink);
    }
    free(first);
    free(shrink);
}

/* --- the control --- */

bool library_control(struct library_search *search, uint64_t seed, struct library_schedule *control) {
    const struct library_schedule best = search->found;
    uint32_t wanted = search->found_outcome.promises;
    for (int client = 0; client < WORKLOAD_CLIENTS; client++)
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
            for (int place = best.workload.threads[client][thread].count - 1; place >= 0; place--) {
                if (!stands_alone(&best.workload.threads[client][thread], place)) continue;
                *control = best;
                calls_remove(&control->workload, client, thread, place);
                if (workload_calls(&control->workload) == 0) continue;
                struct library_outcome outcome = library_search_replay(search, control, seed, false, NULL);
                if (outcome.played && !(outcome.promises & wanted)) return true;
            }
    return false;
}
