#include "harness/explorer/shrink.h"

#include <stdlib.h>

enum { FEWEST = 2, FAULT_STEPS_MOST = 40 }; /* clients and steps among which a single fault is tried */

/* `best` is the smallest violating schedule known, `trial` the next one to run. */
struct shrink {
    struct schedule_search *search;
    uint64_t number, seed;
    const struct search_outcome *wanted;
    struct schedule best, trial;
    int clients;
    int64_t runs_left;
};

static bool violates_the_same(const struct shrink *shrink, const struct search_outcome *outcome) {
    const struct search_settings *settings = shrink->search->settings;
    for (int each = 0; each < CHECKERS_MOST; each++)
        if (search_is_violated(settings, shrink->wanted, each) && search_is_violated(settings, outcome, each))
            return true;
    return false;
}

/* Runs the trial. If it still violates, the deviations that took effect become the best schedule. */
static bool shrink_try(struct shrink *shrink, int clients) {
    if (shrink->runs_left-- <= 0) return false;
    struct search_outcome outcome =
        search_replay(shrink->search, &shrink->trial, clients, shrink->seed, shrink->number, NULL);
    if (!violates_the_same(shrink, &outcome)) return false;
    schedule_copy(&shrink->best, &shrink->search->schedule);
    shrink->clients = clients;
    return true;
}

/* The trial is the best schedule without `length` deviations, starting at `from`. */
static void trial_without(struct shrink *shrink, size_t from, size_t length) {
    shrink->trial.count = 0;
    for (size_t each = 0; each < shrink->best.count; each++)
        if (each < from || each >= from + length) schedule_add(&shrink->trial, shrink->best.deviations[each]);
}

/* Delta debugging (Zeller 1999): large pieces first, then smaller ones, down to single deviations. */
static bool shrink_deviations(struct shrink *shrink) {
    bool smaller = false;
    for (size_t length = shrink->best.count; length > 0; length /= 2) {
        for (size_t from = 0; from < shrink->best.count;) {
            trial_without(shrink, from, length);
            if (shrink_try(shrink, shrink->clients)) smaller = true;
            else from += length;
        }
    }
    return smaller;
}

static int shrunk_client(struct choice choice) {
    if (choice_strikes_client(choice.kind)) return choice.who;
    return choice.kind == CHOICE_TASK || choice.kind >= CHOICE_LOSE_MESSAGE ? choice.who / TASKS_PER_CLIENT : -1;
}

/* Renumbers a choice after client `gone` was left out: higher numbers move down by one client. */
static struct choice renumbered(struct choice choice, int gone) {
    if (shrunk_client(choice) > gone) choice.who -= choice_strikes_client(choice.kind) ? 1 : TASKS_PER_CLIENT;
    return choice;
}

static void trial_without_client(struct shrink *shrink, int gone) {
    shrink->trial.count = 0;
    for (size_t each = 0; each < shrink->best.count; each++) {
        struct deviation deviation = shrink->best.deviations[each];
        if (shrunk_client(deviation.usual) == gone || shrunk_client(deviation.instead) == gone) continue;
        deviation.usual = renumbered(deviation.usual, gone);
        deviation.instead = renumbered(deviation.instead, gone);
        schedule_add(&shrink->trial, deviation);
    }
}

static bool shrink_clients(struct shrink *shrink) {
    for (int gone = shrink->clients - 1; gone >= 0 && shrink->clients > 1; gone--) {
        trial_without_client(shrink, gone);
        if (shrink_try(shrink, shrink->clients - 1)) return true;
    }
    return false;
}

/* The only fault of a schedule, or NULL. */
static const struct choice *only_fault(const struct schedule *schedule) {
    const struct choice *found = NULL;
    for (size_t each = 0; each < schedule->count; each++) {
        const struct choice *instead = &schedule->deviations[each].instead;
        if ((int)instead->kind < CHOICE_FAULTS_FROM) continue;
        if (found) return NULL;
        found = instead;
    }
    return found;
}

/* Looks for a schedule of at most two clients whose only deviation is the fault: before a step of a client's worker; a
 * fault of a client strikes that client. */
static bool shrink_to_fault(struct shrink *shrink) {
    const struct choice *fault = only_fault(&shrink->best);
    if (!fault || (shrink->best.count == 1 && shrink->clients <= (int)FEWEST)) return false;
    struct choice struck = *fault;
    int clients = shrink->clients < FEWEST ? shrink->clients : FEWEST;
    for (uint64_t step = 1; step <= FAULT_STEPS_MOST; step++) {
        for (int client = 0; client < clients; client++) {
            if (choice_strikes_client(struck.kind)) struck.who = client;
            else if (!choice_strikes_node(struck.kind) && !choice_strikes_replica(struck.kind))
                struck.who = TASKS_PER_CLIENT * client;
            shrink->trial.count = 0;
            schedule_add(&shrink->trial, (struct deviation){{CHOICE_TASK, TASKS_PER_CLIENT * client, 0}, step, struck});
            if (shrink_try(shrink, clients)) return true;
        }
    }
    return false;
}

/* Halves durations over two leases: three leases become one and a half. */
static bool shrink_amounts(struct shrink *shrink) {
    int64_t lease_ms = shrink->search->world->settings.lease_ms;
    for (size_t each = 0; each < shrink->best.count; each++) {
        int64_t amount = shrink->best.deviations[each].instead.amount;
        if (amount <= lease_ms * 2) continue;
        schedule_copy(&shrink->trial, &shrink->best);
        shrink->trial.deviations[each].instead.amount = amount / 2;
        if (shrink_try(shrink, shrink->clients)) return true;
    }
    return false;
}

void search_shrink(struct schedule_search *search, uint64_t number, int *clients) {
    struct shrink shrink = {.search = search,
                            .number = number,
                            .seed = search_seed(search->settings->seed, search->found_origin),
                            .wanted = &search->found_outcome,
                            .clients = *clients,
                            .runs_left = search->settings->shrink_runs};
    schedule_copy(&shrink.best, &search->found);
    (void)shrink_to_fault(&shrink);
    while (shrink.runs_left > 0 && (shrink_clients(&shrink) || shrink_deviations(&shrink) || shrink_amounts(&shrink)))
        continue;
    schedule_copy(&search->schedule, &shrink.best);
    *clients = shrink.clients;
    schedule_free(&shrink.best);
    schedule_free(&shrink.trial);
}
