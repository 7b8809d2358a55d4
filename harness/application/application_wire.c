#include "harness/application/application_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/grown.h"

static int64_t wire_now_ns(const struct application_wire *wire) {
    return shared_page_mono_ns(wire->world->page) - wire->world->began_ns;
}

/* --- tables --- */

/* Of all tables, with the columns of their primary keys in the order of the key. */
static const char TABLES[] =
    "SELECT c.oid, CASE WHEN n.nspname = 'public' THEN c.relname::text ELSE format('%s.%s', n.nspname, c.relname) END, "
    "a1.attname, a2.attname, a3.attname, a4.attname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary "
    "LEFT JOIN pg_attribute a1 ON a1.attrelid = c.oid AND a1.attnum = i.indkey[0] "
    "LEFT JOIN pg_attribute a2 ON a2.attrelid = c.oid AND a2.attnum = i.indkey[1] "
    "LEFT JOIN pg_attribute a3 ON a3.attrelid = c.oid AND a3.attnum = i.indkey[2] "
    "LEFT JOIN pg_attribute a4 ON a4.attrelid = c.oid AND a4.attnum = i.indkey[3] "
    "WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'lockstorm_saved')";

static void table_take(void *hearer, const char *const *values, int count) {
    struct application_wire *wire = hearer;
    if (wire->table_count == WIRE_TABLES || count < 2 + TABLE_KEYS || !values[0] || !values[1]) return;
    struct observed_table *table = &wire->tables[wire->table_count++];
    *table = (struct observed_table){.oid = (uint32_t)strtoul(values[0], NULL, 10)};
    snprintf(table->name, sizeof table->name, "%s", values[1]);
    table->facts.name = table->name;
    for (int each = 0; each < TABLE_KEYS && values[2 + each]; each++) {
        snprintf(table->keys[each], sizeof table->keys[each], "%s", values[2 + each]);
        table->facts.keys[each] = table->keys[each];
    }
}

void application_wire_learn(struct application_wire *wire) {
    char reason[SERVER_REASON];
    wire->table_count = 0;
    for (int node = 0; node < wire->world->settings.nodes; node++) {
        struct library_server *server = &wire->world->servers[node];
        if (server->kind == &POSTGRES_KIND && !server->kind->ask(server, TABLES, table_take, wire, reason))
            server_give_up(server, reason);
    }
}

static const struct table_facts *table_facts_of(void *context, uint32_t oid, const char *name) {
    const struct application_wire *wire = ((struct observed_node *)context)->wire;
    for (int each = 0; each < wire->table_count; each++) {
        const struct observed_table *table = &wire->tables[each];
        if (oid ? table->oid == oid : strcmp(table->name, name) == 0) return &table->facts;
    }
    return NULL;
}

/* --- sessions --- */

static struct observed_session *session_find(struct application_wire *wire, uint64_t serial) {
    for (int each = 0; each < WIRE_SESSIONS; each++)
        if (wire->sessions[each].serial == serial) return &wire->sessions[each];
    return NULL;
}

/* NULL: its server is not read, or all places are taken. */
static struct observed_session *session_of(struct application_wire *wire, const struct library_link *link) {
    struct observed_session *session = session_find(wire, link->serial);
    if (session || !wire->recognisers[link->node]) return session;
    session = session_find(wire, 0);
    if (!session) return NULL;
    *session = (struct observed_session){.serial = link->serial, .client = link->client};
    session->wire = wire_session_open(wire->recognisers[link->node], (int64_t)link->serial);
    return session;
}

static void ring_add(int ring[WIRE_MESSAGES], unsigned *first, unsigned *end, int request) {
    ring[(*end)++ % WIRE_MESSAGES] = request;
    if (*end - *first > WIRE_MESSAGES) (*first)++;
}

static int ring_take(const int ring[WIRE_MESSAGES], unsigned *first, unsigned end) {
    return *first == end ? NO_REQUEST : ring[(*first)++ % WIRE_MESSAGES];
}

/* --- which request is behind a message --- */

static bool request_is_under_way(const struct application_wire *wire, int client, int request) {
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
        if (request != NO_REQUEST && wire->requests[client][thread] == request) return true;
    return false;
}

static bool ring_has(const int ring[WIRE_MESSAGES], unsigned first, unsigned end, int request) {
    for (unsigned at = first; at != end; at++)
        if (ring[at % WIRE_MESSAGES] == request) return true;
    return false;
}

/* Whether a message of the request is under way: then it waits for the answer. */
static bool waits_for_answer(const struct application_wire *wire, int request) {
    for (int each = 0; each < WIRE_SESSIONS; each++) {
        const struct observed_session *session = &wire->sessions[each];
        if (session->serial && (ring_has(session->spoken, session->spoken_first, session->spoken_end, request) ||
                                ring_has(session->executed, session->executed_first, session->executed_end, request)))
            return true;
    }
    return false;
}

/* The only request under way at this instance that waits for no answer; NO_REQUEST: none does, or several do. */
static int only_one_that_runs(const struct application_wire *wire, int client) {
    int found = NO_REQUEST;
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++) {
        int request = wire->requests[client][thread];
        if (request == NO_REQUEST || waits_for_answer(wire, request)) continue;
        if (found != NO_REQUEST) return NO_REQUEST;
        found = request;
    }
    return found;
}

static int request_behind(const struct application_wire *wire, int client) {
    bool is_now = wire->cause_ns == wire_now_ns(wire);
    return is_now && request_is_under_way(wire, client, wire->cause) ? wire->cause : only_one_that_runs(wire, client);
}

static void link_spoken(void *context, const struct library_link *link) {
    struct application_wire *wire = context;
    struct observed_session *session = session_of(wire, link);
    if (!session) return;
    ring_add(session->spoken, &session->spoken_first, &session->spoken_end, request_behind(wire, link->client));
}

static void link_executed(void *context, const struct library_link *link, struct span bytes) {
    struct application_wire *wire = context;
    struct observed_session *session = session_of(wire, link);
    if (!session) return;
    int request = ring_take(session->spoken, &session->spoken_first, session->spoken_end);
    ring_add(session->executed, &session->executed_first, &session->executed_end, request);
    wire->executed++;
    int64_t before = wire_session_statements(session->wire);
    uint64_t sort = link->requests.messages[0].sort;
    /* An event of the request itself comes before it is known how many statements it has. */
    for (int64_t each = before + 1; each <= before + WIRE_MESSAGES / 2; each++) {
        session->statements[each % WIRE_MESSAGES] = request;
        session->sorts[each % WIRE_MESSAGES] = sort;
    }
    wire_session_request(session->wire, bytes, wire_now_ns(wire));
}

/* Its answer is delivered as that of an executed one. */
static void link_refused(void *context, const struct library_link *link) {
    struct observed_session *session = session_of(context, link);
    if (!session) return;
    int request = ring_take(session->spoken, &session->spoken_first, session->spoken_end);
    ring_add(session->executed, &session->executed_first, &session->executed_end, request);
}

static void link_answered(void *context, const struct library_link *link, struct span bytes) {
    struct application_wire *wire = context;
    struct observed_session *session = session_of(wire, link);
    if (session) wire_session_answer(session->wire, bytes, wire_now_ns(wire));
}

static void link_delivered(void *context, const struct library_link *link) {
    struct application_wire *wire = context;
    struct observed_session *session = session_of(wire, link);
    if (!session) return;
    bool pushed = link->is_push && link->owed == 0;
    wire->cause = pushed ? NO_REQUEST : ring_take(session->executed, &session->executed_first, session->executed_end);
    wire->cause_ns = wire_now_ns(wire);
}

static void link_ended(void *context, const struct library_link *link) {
    struct application_wire *wire = context;
    struct observed_session *session = session_find(wire, link->serial);
    if (!session) return;
    wire_session_close(session->wire, wire_now_ns(wire));
    session->serial = 0;
}

/* --- what happens to requests, and to locks and data --- */

void application_wire_asked(struct application_wire *wire, int client, int thread, const char *name) {
    wire->requests[client][thread] = wire->cause = rule_record_request(&wire->record, name, client);
    wire->cause_ns = wire_now_ns(wire);
}

void application_wire_answered(struct application_wire *wire, int client, int thread) {
    if (wire->requests[client][thread] != NO_REQUEST) rule_record_answer(&wire->record, wire->requests[client][thread]);
    wire->requests[client][thread] = NO_REQUEST;
}

static void wire_event_take(void *context, const struct wire_event *event) {
    struct application_wire *wire = ((struct observed_node *)context)->wire;
    const struct observed_session *session = session_find(wire, (uint64_t)event->session);
    int request = session && event->statement > 0 ? session->statements[event->statement % WIRE_MESSAGES] : NO_REQUEST;
    if (request >= wire->record.request_count) request = NO_REQUEST; /* of an earlier record */
    rule_record_event(&wire->record, event, request, session ? session->client : 0);
    wire->places = grown(wire->places, wire->record.count, &wire->place_room, sizeof *wire->places);
    wire->places[wire->record.count - 1] = wire->world->event_count;
    wire->sorts = grown(wire->sorts, wire->record.count, &wire->sort_room, sizeof *wire->sorts);
    wire->sorts[wire->record.count - 1] = session ? session->sorts[event->statement % WIRE_MESSAGES] : 0;
}

/* --- its life --- */

void application_wire_open(struct application_wire *wire, struct library_world *world, const struct lock_hint *hints,
                           int hint_count) {
    *wire = (struct application_wire){.world = world, .cause = NO_REQUEST};
    wire->observer = (struct link_observer){.context = wire,
                                            .spoken = link_spoken,
                                            .executed = link_executed,
                                            .refused = link_refused,
                                            .answered = link_answered,
                                            .delivered = link_delivered,
                                            .ended = link_ended};
    world->observer = &wire->observer;
    for (int node = 0; node < world->settings.nodes; node++) {
        bool is_redis = world->servers[node].kind == &REDIS_KIND,
             is_postgres = world->servers[node].kind == &POSTGRES_KIND;
        wire->nodes[node] = (struct observed_node){wire, node};
        const struct recogniser_settings settings = {.service = is_redis ? WIRE_REDIS : WIRE_POSTGRES,
                                                     .context = &wire->nodes[node],
                                                     .event = wire_event_take,
                                                     .table = table_facts_of,
                                                     .hints = hints,
                                                     .hint_count = hint_count,
                                                     .database = world->settings.database};
        if (is_redis || is_postgres) wire->recognisers[node] = recogniser_open(&settings);
    }
    application_wire_begin(wire);
}

void application_wire_close(struct application_wire *wire) {
    for (int each = 0; each < WIRE_SESSIONS; each++)
        if (wire->sessions[each].serial) wire_session_close(wire->sessions[each].wire, 0);
    for (int node = 0; node < LIBRARY_NODES; node++)
        if (wire->recognisers[node]) recogniser_close(wire->recognisers[node]);
    rule_record_free(&wire->record);
    free(wire->places);
    free(wire->sorts);
}

void application_wire_begin(struct application_wire *wire) {
    rule_record_clear(&wire->record);
    wire->executed = 0;
    for (int client = 0; client < LIBRARY_CLIENTS; client++)
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++) wire->requests[client][thread] = NO_REQUEST;
    for (int each = 0; each < WIRE_SESSIONS; each++) {
        struct observed_session *session = &wire->sessions[each];
        for (int at = 0; at < WIRE_MESSAGES; at++)
            session->spoken[at] = session->executed[at] = session->statements[at] = NO_REQUEST;
    }
    wire->cause = NO_REQUEST;
}

json_t *application_wire_json(const struct application_wire *wire) {
    json_t *all = json_array();
    for (size_t each = 0; each < wire->record.count; each++) {
        const struct rule_event *event = &wire->record.events[each];
        json_array_append_new(all,
                              json_pack("{s:s,s:I,s:I,s:i,s:i,s:s,s:s}", "kind", wire_event_kind_name(event->wire.kind),
                                        "at_ns", (json_int_t)event->wire.answered_ns, "before",
                                        (json_int_t)wire->places[each], "instance", event->instance + 1, "request",
                                        event->request + 1, "object", event->wire.object, "text", event->wire.text));
    }
    return all;
}
