#include <string.h>

#include "harness/library/library_world.h"
#include "harness/scheduler/clock.h"

/* A schedule in which calls are not answered ends after so many leases, and the longest work. */
enum { LEASES_MOST = 60 };

/* --- what can happen --- */

/* Whether it makes its calls: its program runs, or is started by one. */
static bool makes_calls(const struct library_world *world, int client) {
    return world->clients[client].runs || (library_is_job(world, client) && !world->clients[client].crashed);
}

static bool can_call(const struct library_world *world, int client, int thread) {
    const struct library_thread *state = &world->clients[client].threads[thread];
    bool left = state->next < world->workload.threads[workload_thread_number(client, thread)].count;
    return makes_calls(world, client) && left && !state->asked && !library_is_paused(world, client) &&
           state->idle_until_ns <= shared_page_mono_ns(world->page);
}

static int client_choices(const struct library_world *world, int client, struct choice *choices, int count) {
    const struct library_client *of = &world->clients[client];
    for (int number = 0; number < of->links_used; number++) {
        int who = library_link_number(client, number);
        const struct library_link *link = library_link_look(world->clients, who);
        if (!link) continue;
        if (library_answer_is_due(world, link)) choices[count++] = (struct choice){CHOICE_ANSWER, who, 0};
        if (library_request_is_due(world, link)) choices[count++] = (struct choice){CHOICE_REQUEST, who, 0};
    }
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
        if (can_call(world, client, thread))
            choices[count++] = (struct choice){CHOICE_CALL, workload_thread_number(client, thread), 0};
    return count;
}

/* Whether every call was made and answered, and every thread has worked. */
static bool is_done(const struct library_world *world) {
    for (int each = 0; each < WORKLOAD_THREADS_ALL; each++) {
        const struct library_client *client = &world->clients[each / WORKLOAD_THREADS];
        const struct library_thread *state = &client->threads[each % WORKLOAD_THREADS];
        if (makes_calls(world, each / WORKLOAD_THREADS) &&
            (state->asked || state->next < world->workload.threads[each].count))
            return false;
    }
    return true;
}

static int64_t longest_work_ms(const struct workload *workload) {
    int64_t longest_ms = 0;
    for (int each = 0; each < WORKLOAD_THREADS_ALL; each++)
        for (int call = 0; call < workload->threads[each].count; call++)
            if (workload->threads[each].calls[call].work_ms > longest_ms)
                longest_ms = workload->threads[each].calls[call].work_ms;
    return longest_ms;
}

/* How long a schedule may go on; `done`: when every call was answered, and only timers are left. */
static int64_t schedule_limit_ms(const struct library_world *world, bool done) {
    const struct library_settings *settings = &world->settings;
    if (done) return settings->lasts_ms;
    return LEASES_MOST * settings->lease_ms + settings->lasts_ms + longest_work_ms(&world->workload);
}

int library_choices(struct search_world *search, struct choice *choices) {
    struct library_world *world = (struct library_world *)search;
    int count = 0;
    for (int client = 0; client < LIBRARY_CLIENTS; client++) count = client_choices(world, client, choices, count);
    if (count > 0) return count;
    bool done = is_done(world);
    int64_t until_ns = world->began_ns + schedule_limit_ms(world, done) * CLOCK_NS_PER_MS;
    if (library_next_ns(world) > until_ns) {
        world->stopped = !done;
        return 0;
    }
    choices[0] = (struct choice){.kind = CHOICE_CLOCK};
    return 1;
}

bool library_can_take(const struct library_world *world, struct choice step) {
    if (step.kind == CHOICE_CALL)
        return step.who < LIBRARY_CLIENTS * WORKLOAD_THREADS &&
               can_call(world, step.who / WORKLOAD_THREADS, step.who % WORKLOAD_THREADS);
    if (step.kind != CHOICE_REQUEST && step.kind != CHOICE_ANSWER) return false;
    const struct library_link *link = library_link_look(world->clients, step.who);
    if (!link) return false;
    return step.kind == CHOICE_REQUEST ? library_request_is_due(world, link) : library_answer_is_due(world, link);
}

/* --- steps --- */

static bool cancel_due(struct library_world *world) {
    int64_t now = shared_page_mono_ns(world->page);
    for (int client = 0; client < LIBRARY_CLIENTS; client++)
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++) {
            const struct library_thread *state = &world->clients[client].threads[thread];
            bool due = state->asked && state->cancel_at_ns > 0 && state->cancel_at_ns <= now;
            if (due && world->clients[client].runs && !library_is_paused(world, client) &&
                !calls_cancel(world, client, thread))
                return false;
        }
    return true;
}

/* Whether no program sleeps for less than a millisecond. Go's runtime sleeps for some microseconds between a message's
 * arrival and the goroutine that waits for it: what the message says is not known yet. A longer sleep says nothing, no
 * matter how soon it ends. */
static bool is_at_rest(const struct library_world *world) {
    for (int client = 0; client < LIBRARY_CLIENTS; client++)
        if (world->clients[client].runs && !library_is_paused(world, client) &&
            hosted_naps(&world->clients[client].program, CLOCK_NS_PER_MS))
            return false;
    return true;
}

static bool clock_step(struct library_world *world) {
    if (is_at_rest(world)) {
        library_leases_note(world);
        library_event_add(world, (struct call_event){.kind = EVENT_IDLE, .client = -1});
    }
    library_clock_move(world, library_next_ns(world));
    return library_settle(world) && cancel_due(world);
}

static bool call_next(struct library_world *world, int client, int thread) {
    struct library_thread *state = &world->clients[client].threads[thread];
    const struct planned_call *planned = library_next_call(world, client, thread);
    if (planned->call.verb != CALL_WORK) return world->settings.protocol->ask(world, client, thread);
    state->idle_until_ns = shared_page_mono_ns(world->page) + planned->work_ms * CLOCK_NS_PER_MS;
    state->next++;
    return true;
}

static bool step_take(struct library_world *world, struct choice choice) {
    if (choice_is_fault(choice.kind)) {
        library_strike(world, choice);
        return library_settle(world);
    }
    world->search.steps++;
    if (choice.kind == CHOICE_CLOCK) return clock_step(world) && library_settle(world);
    bool is_call = choice.kind == CHOICE_CALL;
    struct library_link *link = is_call ? NULL : library_link_find(world->clients, choice.who);
    int client = choice.who / (is_call ? WORKLOAD_THREADS : LIBRARY_LINKS);
    if (is_call) {
        if (!call_next(world, client, choice.who % WORKLOAD_THREADS)) return false;
    } else if (choice.kind == CHOICE_REQUEST) {
        library_request_arrives(world, link);
    } else {
        link_deliver_answer(link);
    }
    if (!library_settle(world) || !world->offer.cancels_of) return !world->search.reason[0];
    return calls_cancel_at(world, client, !is_call) && library_settle(world);
}

/* The servers are asked for leases when nothing is under way: then each client that was granted a lock knows it. */
bool library_apply(struct search_world *search, struct choice choice) {
    struct library_world *world = (struct library_world *)search;
    size_t before = world->event_count;
    library_deviation_note(world);
    bool good = step_take(world, choice);
    for (size_t each = before; good && each < world->event_count; each++)
        if (world->events[each].kind == EVENT_ANSWER && library_is_quiet(world) && is_at_rest(world)) {
            library_leases_note(world);
            return true;
        }
    return good;
}
