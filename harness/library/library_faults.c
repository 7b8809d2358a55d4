#include "harness/library/library_world.h"

#include "harness/scheduler/clock.h"

/* --- whether a fault can strike --- */

static bool allows_link(const struct library_world *world, struct choice fault) {
    if (fault.who < 0 || fault.who >= LIBRARY_CLIENTS * LIBRARY_LINKS) return false;
    const struct library_link *link = library_link_look(world->clients, fault.who);
    if (!link || link->ended) return false;
    if (fault.kind == CHOICE_HOLD_REPLY) return link->answers.count > 0 && library_answer_is_due(world, link);
    bool due = library_request_is_due(world, link);
    if (fault.kind != CHOICE_ERROR_REPLY) return due;
    return due && link->answers.count == 0 && !link->is_push && link->server.server->kind->busy;
}

static bool can_end_server(const struct library_world *world, int node) {
    int down = 0;
    for (int each = 0; each < world->settings.nodes; each++) down += world->down[each] != CHOICE_NONE;
    return world->offer.facts.nodes == world->settings.nodes && !world->offer.facts.parts && !world->down[node] &&
           choice_leaves_majority(world->settings.nodes, down);
}

bool library_allows(const struct library_world *world, struct choice fault) {
    if (choice_has_amount(fault.kind) && fault.amount == 0) return false;
    if (choice_strikes(fault.kind, TARGET_NODE)) {
        if (fault.who < 0 || fault.who >= world->settings.nodes) return false;
        const struct server_kind *kind = world->servers[fault.who].kind;
        if (choice_ends_server(fault.kind)) return can_end_server(world, fault.who);
        return fault.kind == CHOICE_CLOCK_JUMP ? !kind->is_still : kind->restarts;
    }
    if (!choice_strikes(fault.kind, TARGET_CLIENT)) return allows_link(world, fault);
    return fault.who >= 0 && fault.who < world->workload.clients && world->clients[fault.who].runs &&
           !library_is_paused(world, fault.who);
}

/* --- what it does --- */

/* What was on its way to the server does not arrive. */
static void link_lose(struct library_world *world, struct library_link *link) {
    for (; link->requests.count > 0; byte_queue_drop(&link->requests)) library_request_note(world, link, HEARD_LOST);
    link_end(link);
}

static void links_end(struct library_world *world, int node) {
    for (int client = 0; client < LIBRARY_CLIENTS; client++)
        for (int each = 0; each < world->clients[client].link_count; each++) {
            struct library_link *link = &world->clients[client].links[each];
            if (!link->ended && link->node == node) link_lose(world, link);
        }
}

static void crash(struct library_world *world, int number) {
    struct library_client *client = &world->clients[number];
    hosted_end(&client->program);
    client->runs = false;
    client->crashed = true;
    world->excludes_end = true;
    for (int each = 0; each < client->link_count; each++) link_cut(&client->links[each]);
}

static void restart(struct library_world *world, int node, bool empty) {
    links_end(world, node);
    node_scripts_forget(&world->servers[node].node);
    if (empty) node_flush(&world->servers[node].node);
}

void library_link_silence(struct library_link *link) {
    link->requests_held_until_ns = link->answers_held_until_ns = INT64_MAX;
}

/* Programs have seen it, and are not used again. */
static void library_server_down(struct library_world *world, int node, enum choice_kind how) {
    world->down[node] = how;
    world->excludes_end = true;
    if (how == CHOICE_SERVER_DOWN) links_end(world, node);
    for (int number = 0; number < LIBRARY_CLIENTS; number++) {
        struct library_client *client = &world->clients[number];
        if (how == CHOICE_SERVER_DOWN) link_door_refuse(&client->doors[node]);
        for (int each = 0; each < client->link_count; each++)
            if (client->links[each].node == node) library_link_silence(&client->links[each]);
    }
}

static const enum fault_effect EFFECTS[CHOICE_KINDS] = {
    [CHOICE_PAUSE] = FAULT_STILL,
    [CHOICE_CRASH] = FAULT_GONE,
    [CHOICE_DROP_REQUEST] = FAULT_LOST,
    [CHOICE_LOSE_REPLY] = FAULT_LOST,
    [CHOICE_ERROR_REPLY] = FAULT_ERROR,
    [CHOICE_CLOCK_JUMP] = FAULT_CLOCK,
    [CHOICE_CLIENT_CLOCK_JUMP] = FAULT_CLOCK,
    [CHOICE_RESTART] = FAULT_LOST,
    [CHOICE_RESTART_EMPTY] = FAULT_DATA,
    [CHOICE_SERVER_DOWN] = FAULT_DOWN,
    [CHOICE_SERVER_SILENT] = FAULT_SILENT,
};

static int fault_client(struct choice fault) {
    if (choice_strikes(fault.kind, TARGET_NODE)) return ANY_SERVER;
    return choice_strikes(fault.kind, TARGET_CLIENT) ? fault.who : fault.who / LIBRARY_LINKS;
}

static void fault_note(struct library_world *world, struct choice fault) {
    int64_t at_ns = shared_page_mono_ns(world->page) - world->began_ns;
    bool late = fault.kind == CHOICE_HOLD_REQUEST || fault.kind == CHOICE_HOLD_REPLY;
    bool lasts = late || fault.kind == CHOICE_PAUSE;
    library_event_add(world,
                      (struct call_event){.kind = late ? EVENT_LATE : EVENT_FAULT,
                                          .fault = (int)fault.kind,
                                          .effect = EFFECTS[fault.kind],
                                          .client = fault_client(fault),
                                          .reply = fault.kind == CHOICE_HOLD_REPLY || fault.kind == CHOICE_LOSE_REPLY,
                                          .until_ns = choice_ends_server(fault.kind)
                                                          ? LATE_FOR_EVER
                                                          : at_ns + (lasts ? fault.amount * CLOCK_NS_PER_MS : 0)});
}

static void link_strike(struct library_world *world, struct choice fault) {
    struct library_link *link = library_link_find(world->clients, fault.who);
    int64_t until_ns = shared_page_mono_ns(world->page) + fault.amount * CLOCK_NS_PER_MS;
    switch (fault.kind) {
    case CHOICE_HOLD_REQUEST: link->requests_held_until_ns = until_ns; break;
    case CHOICE_HOLD_REPLY: link->answers_held_until_ns = until_ns; break;
    case CHOICE_DROP_REQUEST: link_lose(world, link); break;
    case CHOICE_LOSE_REPLY:
        library_request_arrives(world, link);
        link_lose(world, link);
        break;
    default:
        library_request_note(world, link, HEARD_REFUSED);
        link_refuse_request(link, link->server.server->kind->busy);
        break;
    }
}

void library_strike(struct library_world *world, struct choice fault) {
    int64_t amount_ns = fault.amount * CLOCK_NS_PER_MS;
    fault_note(world, fault);
    switch (fault.kind) {
    case CHOICE_PAUSE: world->clients[fault.who].paused_until_ns = shared_page_mono_ns(world->page) + amount_ns; break;
    case CHOICE_CRASH: crash(world, fault.who); break;
    case CHOICE_CLIENT_CLOCK_JUMP: atomic_fetch_add(&world->page->tasks[fault.who].wall_offset_ns, amount_ns); break;
    case CHOICE_CLOCK_JUMP:
        server_clock_jump(&world->servers[fault.who], amount_ns);
        library_clock_move(world, shared_page_mono_ns(world->page));
        break;
    case CHOICE_SERVER_DOWN:
    case CHOICE_SERVER_SILENT: library_server_down(world, fault.who, fault.kind); break;
    case CHOICE_RESTART: restart(world, fault.who, false); break;
    case CHOICE_RESTART_EMPTY: restart(world, fault.who, true); break;
    default: link_strike(world, fault); break;
    }
}
