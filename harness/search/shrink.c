#include "harness/search/search.h"

#include <string.h>

enum { FEWEST = 2, FAULT_STEPS_MOST = 40 }; /* clients and steps among which a single fault is tried */
enum { RENUMBERED_MOST = 3 };               /* deviations whose numbers are tried anew when a call is dropped */

/* `best` is the smallest violating schedule known, `trial` the next one to run. */
struct shrink {
    struct search *search;
    uint64_t seed;
    struct schedule best, trial;
    struct search_outcome shown; /* of hosted programs: what new ones showed last */
    int64_t runs_left;
};

static bool violates_the_same(const struct search *search, const struct search_outcome *outcome) {
    for (int each = 0; each < search->world->property_count; each++)
        if (outcome->played && search_is_violated(search->settings, &search->found_outcome, each) &&
            search_is_violated(search->settings, outcome, each))
            return true;
    return false;
}

/* Runs the trial. If it still violates, what took effect of it becomes the best schedule. */
static bool shrink_try(struct shrink *shrink) {
    struct search *search = shrink->search;
    if (shrink->runs_left-- <= 0) return false;
    struct search_outcome outcome =
        search_replay(search, &shrink->trial, shrink->seed, search->found_number, false, NULL);
    if (!violates_the_same(search, &outcome)) return false;
    schedule_copy(&shrink->best, &search->schedule);
    return true;
}

static void trial_begin(struct shrink *shrink) {
    schedule_copy(&shrink->trial, &shrink->best);
}

/* --- deviations: delta debugging (Zeller 1999) --- */

/* The trial is the best schedule without `length` deviations, starting at `from`. */
static void trial_without(struct shrink *shrink, size_t from, size_t length) {
    trial_begin(shrink);
    shrink->trial.count = 0;
    for (size_t each = 0; each < shrink->best.count; each++)
        if (each < from || each >= from + length) schedule_add(&shrink->trial, shrink->best.deviations[each]);
}

/* Large pieces first, then smaller ones, down to single deviations. */
static bool shrink_deviations(struct shrink *shrink) {
    bool smaller = false;
    for (size_t length = shrink->best.count; length > 0; length /= 2) {
        for (size_t from = 0; from < shrink->best.count && shrink->runs_left > 0;) {
            trial_without(shrink, from, length);
            if (shrink_try(shrink)) smaller = true;
            else from += length;
        }
    }
    return smaller;
}

/* --- clients --- */

/* Renumbers a choice after client `gone` was left out: higher numbers move down by one client. */
static struct choice renumbered(const struct choice_space *space, struct choice choice, int gone) {
    if (choice_client(space, choice) > gone) choice.who -= choice_units(choice_target(space, choice.kind));
    return choice;
}

static void trial_without_client(struct shrink *shrink, int gone) {
    const struct choice_space *space = shrink->search->world->space;
    trial_begin(shrink);
    shrink->trial.workload.clients--;
    shrink->trial.count = 0;
    for (size_t each = 0; each < shrink->best.count; each++) {
        struct deviation deviation = shrink->best.deviations[each];
        if (choice_client(space, deviation.usual) == gone || choice_client(space, deviation.instead) == gone) continue;
        deviation.usual = renumbered(space, deviation.usual, gone);
        deviation.instead = renumbered(space, deviation.instead, gone);
        schedule_add(&shrink->trial, deviation);
    }
}

/* Of clients with calls only the last one is left out, once it has none. */
static bool shrink_clients(struct shrink *shrink) {
    const struct workload *workload = &shrink->best.workload;
    int last = workload->clients - 1;
    bool has_calls = workload_calls(workload) > 0;
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
        if (workload->threads[workload_thread_number(last, thread)].count > 0) return false;
    for (int gone = last; gone >= (has_calls ? last : 0) && workload->clients > 1; gone--) {
        trial_without_client(shrink, gone);
        if (shrink_try(shrink)) return true;
    }
    return false;
}

/* The only fault of a schedule, or NULL. */
static const struct choice *only_fault(const struct schedule *schedule) {
    const struct choice *found = NULL;
    for (size_t each = 0; each < schedule->count; each++) {
        const struct choice *instead = &schedule->deviations[each].instead;
        if (!choice_is_fault(instead->kind)) continue;
        if (found) return NULL;
        found = instead;
    }
    return found;
}

/* Of C locks: looks for a schedule of at most two clients whose only deviation is the fault, before a step of a
 * client's worker; a fault of a client strikes that client. */
static bool shrink_to_fault(struct shrink *shrink) {
    const struct choice *fault = only_fault(&shrink->best);
    int clients = shrink->best.workload.clients;
    if (!fault || shrink->search->world->has_programs || (shrink->best.count == 1 && clients <= (int)FEWEST))
        return false;
    struct choice struck = *fault;
    clients = clients < FEWEST ? clients : FEWEST;
    for (uint64_t step = 1; step <= FAULT_STEPS_MOST; step++) {
        for (int client = 0; client < clients; client++) {
            if (choice_strikes(struck.kind, TARGET_CLIENT)) struck.who = client;
            else if (choice_strikes(struck.kind, TARGET_MESSAGE)) struck.who = TASKS_PER_CLIENT * client;
            shrink->trial.count = 0;
            shrink->trial.workload.clients = clients;
            schedule_add(&shrink->trial, (struct deviation){{CHOICE_TASK, TASKS_PER_CLIENT * client, 0}, step, struck});
            if (shrink_try(shrink)) return true;
        }
    }
    return false;
}

/* --- calls --- */

static void call_remove(struct workload_thread *thread, int place) {
    thread->count--;
    memmove(&thread->calls[place], &thread->calls[place + 1],
            (size_t)(thread->count - place) * sizeof thread->calls[0]);
}

/* Takes a call away, an acquire with its release. */
static void calls_remove(struct workload *workload, int thread, int place) {
    struct workload_thread *of = &workload->threads[thread];
    int match = of->calls[place].call.verb == CALL_ACQUIRE ? of->calls[place].match : -1;
    if (match >= 0) call_remove(of, match);
    call_remove(of, place);
    workload_match(workload);
}

static bool shrink_threads(struct shrink *shrink) {
    for (int thread = WORKLOAD_THREADS_ALL - 1; thread >= 0; thread--) {
        if (shrink->best.workload.threads[thread].count == 0) continue;
        trial_begin(shrink);
        shrink->trial.workload.threads[thread].count = 0;
        if (shrink_try(shrink)) return true;
    }
    return false;
}

/* The release of an acquire goes with it, and not by itself. */
static bool stands_alone(const struct workload_thread *thread, int place) {
    for (int each = 0; each < place; each++)
        if (thread->calls[each].match == place) return false;
    return true;
}

/* Without the call there are fewer messages, and what a deviation strikes has another number: a little less, or more if
 * something else is asked instead. */
static bool call_drop(struct shrink *shrink, int thread, int place) {
    static const int NEIGHBOURS[] = {-1, -2, -3, 1};
    trial_begin(shrink);
    calls_remove(&shrink->trial.workload, thread, place);
    if (shrink_try(shrink)) return true;
    for (size_t each = 0; each < shrink->best.count && each < RENUMBERED_MOST; each++) {
        for (size_t near = 0; near < sizeof NEIGHBOURS / sizeof NEIGHBOURS[0]; near++) {
            int64_t step = (int64_t)shrink->best.deviations[each].step + NEIGHBOURS[near];
            if (step < 1) continue;
            trial_begin(shrink);
            calls_remove(&shrink->trial.workload, thread, place);
            shrink->trial.deviations[each].step = (uint64_t)step;
            if (shrink_try(shrink)) return true;
        }
    }
    return false;
}

static bool shrink_calls(struct shrink *shrink) {
    bool smaller = false;
    for (int thread = 0; thread < WORKLOAD_THREADS_ALL; thread++) {
        const struct workload_thread *of = &shrink->best.workload.threads[thread];
        for (int place = of->count - 1; place >= 0; place--) {
            if (place >= of->count || !stands_alone(of, place)) continue;
            smaller |= call_drop(shrink, thread, place);
        }
    }
    return smaller;
}

/* --- numbers --- */

static bool number_try(struct shrink *shrink, int64_t *number, int64_t value) {
    if (*number == value) return false;
    *number = value; /* in shrink->trial */
    return shrink_try(shrink);
}

/* In the trial. What the first acquire of a lock object says holds for the object, where the library has it so. */
static bool lease_try(struct shrink *shrink, const struct planned_call *call, int64_t lease_ms) {
    if (call->call.lease_ms == lease_ms) return false;
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++) {
        struct workload_thread *of = &shrink->trial.workload.threads[workload_thread_number(call->call.client, thread)];
        for (int each = 0; each < of->count; each++) {
            bool same = &of->calls[each] == call ||
                        (shrink->search->world->lease_of_object && of->calls[each].call.lock == call->call.lock);
            if (same && of->calls[each].call.lease == LEASE_GIVEN) of->calls[each].call.lease_ms = lease_ms;
        }
    }
    return shrink_try(shrink);
}

static bool shrink_call_numbers(struct shrink *shrink, int thread, int place) {
    struct planned_call *call = &shrink->trial.workload.threads[thread].calls[place];
    int64_t lease_ms = shrink->search->world->lease_ms;
    trial_begin(shrink);
    if (call->cancel_after_ms > 0 && number_try(shrink, &call->cancel_after_ms, 0)) return true;
    trial_begin(shrink);
    bool ends = call->call.over || call->cancel_at > 0;
    call->call.over = false;
    call->cancel_at = 0;
    if (ends && shrink_try(shrink)) return true;
    trial_begin(shrink);
    if (call->call.lease == LEASE_GIVEN && call->call.verb == CALL_ACQUIRE && lease_try(shrink, call, lease_ms))
        return true;
    trial_begin(shrink);
    int64_t whole = (call->work_ms + lease_ms - 1) / lease_ms * lease_ms;
    return call->call.verb == CALL_WORK && number_try(shrink, &call->work_ms, whole);
}

static bool shrink_numbers(struct shrink *shrink) {
    bool rounder = false;
    if (shrink->best.workload.settings[0]) {
        trial_begin(shrink);
        shrink->trial.workload.settings[0] = '\0';
        rounder = shrink_try(shrink);
    }
    for (int thread = 0; thread < WORKLOAD_THREADS_ALL; thread++)
        for (int place = 0; place < shrink->best.workload.threads[thread].count; place++)
            rounder |= shrink_call_numbers(shrink, thread, place);
    return rounder;
}

/* Halves durations over two leases: three leases become one and a half. */
static bool shrink_amounts(struct shrink *shrink) {
    int64_t lease_ms = shrink->search->world->lease_ms;
    for (size_t each = 0; each < shrink->best.count; each++) {
        int64_t amount = shrink->best.deviations[each].instead.amount;
        if (amount <= lease_ms * 2) continue;
        trial_begin(shrink);
        shrink->trial.deviations[each].instead.amount = amount / 2;
        if (shrink_try(shrink)) return true;
    }
    return false;
}

/* --- all of it --- */

/* Whether new programs show the violation in the best schedule; what they play of it becomes the best. A C lock has no
 * programs that could be new: its schedules depend on nothing that was before. */
static bool violates_anew(struct shrink *shrink) {
    struct search *search = shrink->search;
    if (!search->world->has_programs) return true;
    trial_begin(shrink);
    struct search_outcome outcome =
        search_replay(search, &shrink->trial, shrink->seed, search->found_number, true, NULL);
    bool violates = violates_the_same(search, &outcome);
    if (violates) schedule_copy(&shrink->best, &search->schedule);
    if (violates) shrink->shown = outcome;
    return violates;
}

bool search_shrink(struct search *search, struct schedule *smallest) {
    static struct shrink shrink;
    memset(&shrink, 0, sizeof shrink);
    shrink.search = search;
    shrink.seed = search_seed(search->settings->seed, search->found_origin);
    shrink.runs_left = search->settings->shrink_runs;
    schedule_copy(&shrink.best, &search->found);
    bool anew = violates_anew(&shrink);
    if (anew) (void)shrink_to_fault(&shrink);
    while (anew && shrink.runs_left > 0 &&
           (shrink_threads(&shrink) || shrink_clients(&shrink) || shrink_deviations(&shrink) || shrink_calls(&shrink) ||
            shrink_numbers(&shrink) || shrink_amounts(&shrink)))
        continue;
    if (anew && !violates_anew(&shrink)) {
        schedule_copy(&shrink.best, &search->found);
        anew = violates_anew(&shrink);
    }
    if (anew && search->world->has_programs) search->found_outcome = shrink.shown;
    memset(smallest, 0, sizeof *smallest);
    schedule_copy(smallest, &shrink.best);
    schedule_free(&shrink.best);
    schedule_free(&shrink.trial);
    return anew;
}

/* Of a C lock, whose clients all do the same: without one of the deviations. */
static bool control_without_deviation(struct search *search, const struct schedule *smallest, struct schedule *control,
                                      uint64_t seed) {
    for (size_t gone = smallest->count; gone-- > 0;) {
        schedule_copy(control, smallest);
        control->count = 0;
        for (size_t each = 0; each < smallest->count; each++)
            if (each != gone) schedule_add(control, smallest->deviations[each]);
        struct search_outcome outcome = search_replay(search, control, seed, search->found_number, false, NULL);
        if (outcome.played && !violates_the_same(search, &outcome)) return true;
    }
    return false;
}

bool search_control(struct search *search, const struct schedule *smallest, struct schedule *control) {
    uint64_t seed = search_seed(search->settings->seed, search->found_origin);
    if (workload_calls(&smallest->workload) == 0) return control_without_deviation(search, smallest, control, seed);
    for (int thread = 0; thread < WORKLOAD_THREADS_ALL; thread++)
        for (int place = smallest->workload.threads[thread].count - 1; place >= 0; place--) {
            if (!stands_alone(&smallest->workload.threads[thread], place)) continue;
            schedule_copy(control, smallest);
            calls_remove(&control->workload, thread, place);
            if (workload_calls(&control->workload) == 0) continue;
            struct search_outcome outcome = search_replay(search, control, seed, search->found_number, false, NULL);
            /* Without the deviation it would show nothing: each has to take effect still. */
            bool struck = search->schedule.count == smallest->count;
            if (outcome.played && struck && !violates_the_same(search, &outcome)) return true;
        }
    return false;
}
