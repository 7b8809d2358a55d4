#include "harness/library/library_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/search/mix.h"

/* How long it is looked on after a workload: what renews a lease would have renewed it twice. */
enum { LEASES_AFTER = 2, AFTER_LEAST_MS = 4000 };
/* How long programs rest at least before a schedule. */
enum { REST_MS = 50 };

/* Where the clock stands when a session begins. Programs reckon in floating-point seconds, milliseconds and
 * microseconds, whose rounding changes at powers of two. From here on none is passed for 11 days, so that a program
 * that has lived for some schedules, which begin at whole seconds, rounds as a new one does. */
static const int64_t SESSION_NS = INT64_C(1100000) * CLOCK_NS_PER_S - SHARED_PAGE_UPTIME_NS;

bool library_give_up(struct library_world *world, const char *format, ...) {
    va_list arguments;
    if (world->search.reason[0]) return false;
    va_start(arguments, format);
    vsnprintf(world->search.reason, sizeof world->search.reason, format, arguments);
    va_end(arguments);
    return false;
}

/* --- programs --- */

bool library_doors_open(struct library_world *world, int number) {
    struct library_client *client = &world->clients[number];
    for (int node = 0; node < world->settings.nodes; node++) {
        char path[LIBRARY_PATH];
        struct address_error error;
        snprintf(path, sizeof path, "%s/c%d-n%d", world->settings.directory, number + 1, node + 1);
        unlink(path);
        if (!link_door_open(&client->doors[node], world->offer.is_tcp ? "127.0.0.1:0" : path, &error))
            return library_give_up(world, "client-%d has no address for its servers: %s", number + 1, error.text);
    }
    return true;
}

/* Where servers say that others are, the program reaches its own doors. */
static void doors_lead(const struct library_world *world, struct library_client *client) {
    for (int node = 0; node < world->settings.nodes; node++)
        if (world->settings.ports[node] && link_door_port(&client->doors[node]))
            hosted_lead(&client->program, (uint16_t)world->settings.ports[node], link_door_port(&client->doors[node]));
}

bool library_program_start(struct library_world *world, int number, uint64_t seed) {
    struct library_client *client = &world->clients[number];
    char log[LIBRARY_PATH];
    snprintf(log, sizeof log, "%s/client-%d.log", world->settings.directory, number + 1);
    struct random random = random_split(seed, (uint64_t)number);
    client->question = client->control = 0;
    bool started = hosted_start(&client->program, world->settings.protocol->program(world, number), world->page,
                                &world->page->tasks[number], random_next(&random), log);
    if (started) doors_lead(world, client);
    if (started) world->settings.protocol->connect(world, number);
    bool runs = started && hosted_run(&client->program);
    if (!runs && !(started && library_is_job(world, number) && hosted_has_exited(&client->program)))
        return library_give_up(world, "%s%d: %s", world->settings.protocol->program_title, number + 1,
                               client->program.reason);
    client->runs = true;
    return true;
}

static void client_end(struct library_world *world, int number) {
    struct library_client *client = &world->clients[number];
    hosted_end(&client->program);
    for (int each = 0; each < client->link_count; each++)
        if (!client->links[each].ended) link_end(&client->links[each]);
    for (int node = 0; node < world->settings.nodes; node++)
        if (client->doors[node].address.text[0]) link_door_close(&client->doors[node]);
    json_decref(client->control_answer);
    memset(client, 0, sizeof *client);
}

void library_session_end(struct library_world *world) {
    world->never_grants = false;
    for (int client = 0; client < LIBRARY_CLIENTS; client++) client_end(world, client);
    world->excludes_end = world->has_drawn = false;
    for (int node = 0; node < world->settings.nodes; node++) world->servers[node].kind->end(&world->servers[node]);
    library_clock_move(world, SESSION_NS);
}

static void server_make(struct library_world *world, int node) {
    struct library_server *server = &world->servers[node];
    *server = (struct library_server){.kind = world->settings.services[node],
                                      .address = world->settings.addresses[node],
                                      .start = world->settings.starts[node],
                                      .seed = world->settings.seed,
                                      .database = world->settings.database,
                                      .page = world->page,
                                      .slot = &world->page->tasks[LIBRARY_CLIENTS + node]};
    snprintf(server->log, sizeof server->log, "%s/server-%d.log", world->settings.directory, node + 1);
    server_open(server);
}

bool library_world_open(struct library_world *world, const struct library_settings *settings) {
    *world = (struct library_world){.settings = *settings};
    library_search_make(world, settings);
    world->page = aligned_alloc(_Alignof(struct shared_page), sizeof *world->page);
    if (!world->page) abort();
    memset(world->page, 0, sizeof *world->page);
    world->page->time = HISTORY_TIME_VIRTUAL;
    world->page->wall_epoch_ns = CLOCK_EPOCH_NS;
    for (int node = 0; node < settings->nodes; node++) server_make(world, node);
    library_session_end(world);
    return world->settings.protocol->offer(world);
}

void library_world_close(struct library_world *world) {
    library_session_end(world);
    for (int node = 0; node < world->settings.nodes; node++) server_close(&world->servers[node]);
    json_decref(world->deviations);
    json_decref(world->heard);
    free(world->kept.events);
    free(world->events);
    free(world->page);
}

/* --- a schedule --- */

/* Connections that are left from an earlier schedule have not been used in this one. */
static void links_renew(struct library_world *world, int number) {
    struct library_client *client = &world->clients[number];
    int count = 0;
    for (int each = 0; each < client->link_count; each++) {
        if (client->links[each].ended) continue;
        if (client->links[each].fd < 0) {
            link_end(&client->links[each]);
            continue;
        }
        struct library_link link = client->links[each];
        link.number = -1;
        link.requests_held_until_ns = link.answers_held_until_ns = 0;
        client->links[count++] = link;
    }
    client->link_count = count;
    client->links_used = 0;
}

void library_servers_flush(struct library_world *world) {
    for (int node = 0; node < world->settings.nodes; node++) world->servers[node].kind->flush(&world->servers[node]);
}

static bool clients_begin(struct library_world *world, uint64_t seed) {
    for (int number = 0; number < world->workload.clients; number++) {
        struct library_client *client = &world->clients[number];
        if (library_is_job(world, number)) break;
        if (!client->runs && !world->settings.protocol->begin(world, number)) return false;
        struct random random = random_split(seed, (uint64_t)number);
        hosted_seed(&client->program, random_next(&random));
    }
    return true;
}

static void clients_renew(struct library_world *world) {
    /* Also of clients that have no part in this schedule: what an earlier one held back would come in its midst. */
    for (int number = 0; number < LIBRARY_CLIENTS; number++) {
        struct library_client *client = &world->clients[number];
        memset(client->threads, 0, sizeof client->threads);
        memset(client->acquired, 0, sizeof client->acquired);
        client->paused_until_ns = 0;
        world->page->tasks[number].wall_offset_ns = 0;
        links_renew(world, number);
    }
}

/* A schedule begins at a whole second, in which every earlier lease is over. Until then the programs rest: a runtime
 * that has just started, or has just forgotten, looks after its threads more often than one that has nothing to do.
 * Where their timers have a period, all schedules of a session, and the first of any other, begin at the same moment of
 * it: what was found in a session would not happen again with new programs otherwise. */
static bool clients_rest(struct library_world *world) {
    int64_t period_ns = world->settings.timers_ms > 0 ? world->settings.timers_ms * CLOCK_NS_PER_MS : CLOCK_NS_PER_S;
    int64_t at_ns = shared_page_mono_ns(world->page) + REST_MS * CLOCK_NS_PER_MS - SESSION_NS;
    at_ns = SESSION_NS + (at_ns / period_ns + 1) * period_ns;
    return library_drain_until(world, at_ns, false);
}

static bool all_rest(struct library_world *world, uint64_t seed) {
    for (int node = 0; node < world->settings.nodes; node++)
        server_reset(&world->servers[node], mix(seed, (uint64_t)node));
    for (int number = 0; number < LIBRARY_CLIENTS; number++) world->clients[number].acts = false;
    if (!clients_begin(world, seed) || !world->settings.protocol->begun(world, seed)) return false;
    clients_renew(world);
    return clients_rest(world);
}

/* Whether a program that has forgotten an earlier schedule goes on with it: its watchdogs renew, its releases are tried
 * again. That would be taken for a part of the next schedule. A client of Redis has nothing else to do then; those of
 * other services keep their sessions. */
static bool any_goes_on(const struct library_world *world) {
    if (world->settings.protocol->acts_between || world->offer.topology != TOPOLOGY_SINGLE ||
        world->servers[0].kind != &REDIS_KIND)
        return false;
    for (int number = 0; number < LIBRARY_CLIENTS; number++) {
        const struct library_client *client = &world->clients[number];
        if (client->runs && client->has_played && client->acts) return true;
    }
    return false;
}

bool library_begin(struct search_world *search, const struct workload *workload, uint64_t seed, uint64_t number) {
    struct library_world *world = (struct library_world *)search;
    (void)number;
    if (strcmp(world->opened, workload->settings) != 0) library_session_end(world);
    memcpy(world->opened, workload->settings, sizeof world->opened);
    world->workload = *workload;
    workload_match(&world->workload);
    world->event_count = 0;
    world->noted = 0;
    json_array_clear(world->deviations);
    world->stopped = false;
    memset(world->down, 0, sizeof world->down);
    if (!all_rest(world, seed)) return false;
    if (any_goes_on(world)) {
        library_session_end(world);
        if (!all_rest(world, seed)) return false;
    }
    world->has_drawn = true; /* also by a session that began with this schedule, after it was drawn */
    for (int client = 0; client < LIBRARY_CLIENTS; client++)
        world->clients[client].has_played = world->clients[client].runs;
    if (!world->settings.protocol->empty(world)) return false;
    world->began_ns = shared_page_mono_ns(world->page);
    memset(world->key_ends_ns, 0, sizeof world->key_ends_ns);
    world->event_count = 0;
    json_array_clear(world->heard); /* programs were asked to open, and to rest */
    return library_settle(world);
}

static bool forget_all(struct library_world *world) {
    for (int number = 0; number < world->workload.clients; number++)
        if (world->clients[number].runs && !world->settings.protocol->forget(world, number)) return false;
    return true;
}

static bool has_been_quiet(const struct library_world *world) {
    int64_t since_ns = shared_page_mono_ns(world->page) - world->settings.lease_ms * CLOCK_NS_PER_MS;
    for (size_t each = world->event_count; each > 0 && world->events[each - 1].at_ns >= since_ns; each--)
        if (world->events[each - 1].kind == EVENT_EXECUTED) return false;
    return true;
}

/* The judge may find nothing wrong where a library leaves something behind that is nobody's promise: such programs are
 * not used again, unless it is a key that they have not touched for a lease, and which is removed before the next
 * schedule, or a transaction that keeps nobody out. The keys of an application are its data. */
static bool is_harmless(const struct library_world *world, const char *left) {
    static const char *const KINDS[] = {"transaction without a lock ", "key ", "subscription "};
    for (int each = 0; each < (world->settings.protocol->acts_between ? 3 : 2); each++)
        if (strncmp(left, KINDS[each], strlen(KINDS[each])) == 0) return true;
    return false;
}

static bool is_fresh(const struct library_world *world, size_t from) {
    bool quiet = world->settings.protocol->acts_between || has_been_quiet(world);
    for (size_t each = from; each < world->event_count; each++)
        if (world->events[each].kind == EVENT_LEFT && !(quiet && is_harmless(world, world->events[each].name)))
            return false;
    return true;
}

/* A schedule that has taken as many steps as it may ends in the midst of calls: their programs are not used again. */
static bool has_calls(const struct library_world *world) {
    for (int number = 0; number < world->workload.clients; number++)
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
            if (world->clients[number].runs && world->clients[number].threads[thread].asked) return true;
    return false;
}

bool library_end(struct library_world *world) {
    int64_t after_ms = LEASES_AFTER * world->settings.lease_ms;
    if (after_ms < AFTER_LEAST_MS) after_ms = AFTER_LEAST_MS;
    after_ms++; /* so that a call that is not answered has taken too long then (promise_answer.c) */
    int64_t until_ns = shared_page_mono_ns(world->page) + after_ms * CLOCK_NS_PER_MS;
    if (world->search.reason[0] || !library_drain_until(world, until_ns, true)) return false;
    library_event_add(world, (struct call_event){.kind = EVENT_END, .client = -1});
    size_t from = world->event_count;
    library_residue_note(world);
    bool fresh = !world->stopped && !world->excludes_end && !has_calls(world) && is_fresh(world, from);
    size_t count = world->event_count;
    fresh = fresh && forget_all(world);
    world->event_count = count; /* the judge hears nothing of it */
    return fresh;
}
