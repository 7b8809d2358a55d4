#include "harness/library/library_world.h"

#include <assert.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "harness/scheduler/clock.h"

static int64_t settle_now_ns(const struct library_world *world) {
    return shared_page_mono_ns(world->page);
}

bool library_is_paused(const struct library_world *world, int client) {
    return world->clients[client].paused_until_ns > settle_now_ns(world);
}

bool library_request_is_due(const struct library_world *world, const struct library_link *link) {
    return !link->ended && link->requests.count > 0 && link->requests_held_until_ns <= settle_now_ns(world);
}

bool library_answer_is_due(const struct library_world *world, const struct library_link *link) {
    return !link->ended && link->fd >= 0 && link->answers.count > 0 &&
           link->answers_held_until_ns <= settle_now_ns(world);
}

bool library_is_quiet(const struct library_world *world) {
    for (int number = 0; number < LIBRARY_CLIENTS; number++)
        for (int each = 0; each < world->clients[number].link_count; each++) {
            const struct library_link *link = &world->clients[number].links[each];
            if (library_request_is_due(world, link) || library_answer_is_due(world, link)) return false;
        }
    return true;
}

/* --- servers --- */

/* An answer may be longer than the server's socket has room for: it sends the rest when the first part was read. */
static bool link_hear_whole(struct library_link *link, struct library_server *server) {
    bool any = link_hear_server(link);
    while (any && !link->ended && byte_queue_has_part(&link->answers)) {
        server_settle(server);
        if (!link_hear_server(link)) break;
    }
    return any;
}

/* The connections on which the server has something to say, and their number. */
static int links_ready(struct library_world *world, const struct library_server *server,
                       struct library_link *ready[LIBRARY_CLIENTS * LIBRARY_LINKS]) {
    struct pollfd fds[LIBRARY_CLIENTS * LIBRARY_LINKS];
    int count = 0, found = 0;
    for (int client = 0; client < LIBRARY_CLIENTS; client++)
        for (int each = 0; each < world->clients[client].link_count; each++) {
            struct library_link *link = &world->clients[client].links[each];
            if (link->server.server != server || link->ended || link->server.fd < 0 || link->server.ended) continue;
            ready[count] = link;
            fds[count++] = (struct pollfd){.fd = link->server.fd, .events = POLLIN};
        }
    if (count == 0 || poll(fds, (nfds_t)count, 0) <= 0) return 0;
    for (int each = 0; each < count; each++)
        if (fds[each].revents) ready[found++] = ready[each];
    return found;
}

static bool server_hear(struct library_world *world, struct library_server *server) {
    struct library_link *ready[LIBRARY_CLIENTS * LIBRARY_LINKS];
    bool any = false;
    for (int count; (count = links_ready(world, server, ready)) > 0; any = true)
        for (int each = 0; each < count; each++) link_hear_whole(ready[each], server);
    return any;
}

/* Whatever a server has to say, on any connection, is there; and what servers that it speaks to have to say then. It
 * has sent them all of it when it is settled, and they have read it when they are. */
static bool servers_hear(struct library_world *world, struct library_server *server) {
    server_settle(server);
    bool any = server_hear(world, server);
    for (int node = 0; server->kind->is_joined && node < world->settings.nodes; node++) {
        if (&world->servers[node] == server) continue;
        server_settle(&world->servers[node]);
        any |= server_hear(world, &world->servers[node]);
    }
    return any;
}

enum { ANSWER_WAIT_MS = 5 };

/* A program may ask a server again and again until something changes there (Redisson asks when the lease ends, even
 * with 0 ms left). After TURNS_MOST messages at the same time each one takes a millisecond. */
enum { TURNS_MOST = 400 };

static void turn_take(struct library_world *world) {
    if (world->busy_ns != settle_now_ns(world)) world->turns = 0;
    world->busy_ns = settle_now_ns(world);
    if (++world->turns <= TURNS_MOST) return;
    library_clock_move(world, settle_now_ns(world) + CLOCK_NS_PER_MS);
    world->busy_ns = settle_now_ns(world);
}

/* Whether a redis-server owes an answer to nobody: what reaches it next has no effect on other connections. With
 * `in_time`: whether time alone makes it send nothing: it publishes only what a command makes it publish. Where answers
 * come that nobody has asked for, it is not known how many are owed. */
static bool owes_nothing(const struct library_world *world, const struct library_server *server, bool in_time) {
    if (server->kind->is_hosted || server->kind->is_joined) return false;
    for (int client = 0; client < LIBRARY_CLIENTS; client++)
        for (int each = 0; each < world->clients[client].link_count; each++) {
            const struct library_link *link = &world->clients[client].links[each];
            bool owes = link->is_push ? !in_time || link->has_waited : link->owed != 0;
            if (link->server.server == server && !link->ended && owes) return false;
        }
    return true;
}

/* A short way to what servers_hear does: to wait for the one answer that there can be. False: it did not come, or not
 * as a whole. */
static bool answer_comes(struct library_link *link) {
    struct pollfd answer = {.fd = link->server.fd, .events = POLLIN};
    return answer.fd >= 0 && poll(&answer, 1, ANSWER_WAIT_MS) > 0 && link_hear_server(link) && link->owed == 0;
}

void library_request_note(struct library_world *world, struct library_link *link, enum heard_fate fate) {
    if (!world->heard || link->requests.format != &RESP_REQUEST_FORMAT || link->requests.count == 0) return;
    link->heard.page = world->page;
    link->heard.began_ns = world->began_ns;
    heard_request(&link->heard, world->heard, byte_queue_first(&link->requests), link->client, link->node, fate);
}

void library_request_arrives(struct library_world *world, struct library_link *link) {
    bool simple = link->requests.messages[0].is_simple && owes_nothing(world, link->server.server, false);
    turn_take(world);
    world->commands++;
    world->clients[link->client].acts |= !link->requests.messages[0].is_plain;
    library_event_add(
        world,
        (struct call_event){.kind = EVENT_EXECUTED, .client = link->client, .node = library_place(world, link->node)});
    library_request_note(world, link, link->fd < 0 ? HEARD_LATE : HEARD_WAITS);
    link_deliver_request(link, settle_now_ns(world));
    if (!simple || !answer_comes(link)) servers_hear(world, link->server.server);
    library_longer_note(world, link->server.server);
}

/* --- programs --- */

static bool lost(struct library_world *world, int number, const char *why) {
    snprintf(world->search.reason, sizeof world->search.reason, "%s%d: %.200s", world->settings.protocol->program_title,
             number + 1, why);
    return false;
}

/* On which connections a program that has run has sent or ended something, and whether it has made new ones. */
struct program_news {
    bool connects[LIBRARY_NODES], speaks[LIBRARY_LINKS];
};

/* One call asks for all of them. poll passes over descriptors that are -1. */
static struct program_news news_of(const struct library_world *world, const struct library_client *client) {
    struct pollfd fds[LIBRARY_NODES + LIBRARY_LINKS];
    struct program_news news = {0};
    int doors = world->settings.nodes;
    for (int node = 0; node < doors; node++)
        fds[node] = (struct pollfd){.fd = client->doors[node].fd, .events = POLLIN};
    for (int each = 0; each < client->link_count; each++)
        fds[doors + each] = (struct pollfd){.fd = client->links[each].fd, .events = POLLIN};
    if (poll(fds, (nfds_t)(doors + client->link_count), 0) <= 0) return news;
    for (int node = 0; node < doors; node++) news.connects[node] = fds[node].revents != 0;
    for (int each = 0; each < client->link_count; each++) news.speaks[each] = fds[doors + each].revents != 0;
    return news;
}

/* A library may make a connection for each call: one that has ended gives its place back. NULL: all are in use. */
static struct library_link *link_place(struct library_client *client) {
    if (client->link_count < LIBRARY_LINKS) return &client->links[client->link_count++];
    for (struct library_link *link = client->links; link < client->links + LIBRARY_LINKS; link++)
        if (link->ended) return link;
    return NULL;
}

/* A library whose connection is not taken would be accused of what follows: the schedule cannot be played. */
static void links_take(struct library_world *world, int number, struct program_news *news) {
    struct library_client *client = &world->clients[number];
    for (int node = 0; node < world->settings.nodes; node++) {
        struct library_link taken;
        if (!news->connects[node]) continue;
        while (library_link_accept(&taken, &client->doors[node], &world->servers[node])) {
            struct library_link *link = link_place(client);
            if (!link) {
                lost(world, number, "it makes more connections than a schedule can follow");
                link_end(&taken);
                break;
            }
            *link = taken;
            link->client = number;
            link->node = node;
            link->number = -1;
            link->observer = world->observer;
            link->serial = ++world->serials;
            client->acts = true;
            if (world->down[node]) library_link_silence(link);
            news->speaks[link - client->links] = true;
        }
    }
}

/* A byte that was sent through a unix socket is there at once. One that went through TCP may come a moment later, so
 * then programs are asked, and listened to, again and again. */
static bool take_stirs(const struct library_world *world, struct library_client *client) {
    bool stirred = client->program.stirred || world->offer.is_tcp;
    client->program.stirred = false;
    for (int each = 0; each < client->link_count; each++) {
        stirred |= client->links[each].stirred;
        client->links[each].stirred = false;
    }
    return stirred;
}

static bool program_run(struct library_world *world, int number) {
    struct library_client *client = &world->clients[number];
    if (!client->runs || library_is_paused(world, number)) return false;
    bool due = hosted_deadline_ns(&client->program) <= settle_now_ns(world), stirred = take_stirs(world, client);
    if (!due && !(stirred && hosted_has_news(&client->program))) return false;
    if (hosted_run(&client->program)) return true;
    if (library_is_job(world, number) && hosted_has_exited(&client->program)) return true;
    client->runs = false;
    lost(world, number, client->program.reason);
    return true;
}

/* When all numbers are given out, a connection takes over the least one that no open connection has. There is one, as
 * there are no more connections than numbers. */
static int link_number_free(struct library_client *client) {
    for (int number = 0; number < LIBRARY_LINKS; number++) {
        struct library_link *had = NULL;
        for (int each = 0; each < client->link_count; each++)
            if (client->links[each].number == number) had = &client->links[each];
        if (had && !had->ended) continue;
        if (had) had->number = -1;
        return number;
    }
    assert(false);
    return -1;
}

/* A connection that an earlier schedule has left and one that is new have the same number, that of their first use.
 * Of those that are first used together that of the first server comes first. */
static void links_number(struct library_world *world, int number) {
    struct library_client *client = &world->clients[number];
    for (int node = 0; node < world->settings.nodes; node++)
        for (int each = 0; each < client->link_count; each++) {
            struct library_link *link = &client->links[each];
            bool used = link->requests.count > 0 || link->answers.count > 0; /* a push on one that only listens */
            if (link->node != node || link->number >= 0 || !used) continue;
            link->number = client->links_used < LIBRARY_LINKS ? client->links_used++ : link_number_free(client);
        }
}

/* What a program has asked on a connection that it closes because a message is late is answered when its own patience
 * ends. */
static void end_note(struct library_world *world, int client, bool reply) {
    library_event_add(world, (struct call_event){.kind = EVENT_FAULT,
                                                 .effect = FAULT_CUT,
                                                 .fault = reply ? CHOICE_HOLD_REPLY : CHOICE_HOLD_REQUEST,
                                                 .client = client,
                                                 .reply = reply,
                                                 .until_ns = LATE_FOR_EVER});
}

/* A client of ZooKeeper that was paused, and has heard nothing meanwhile, gives its connection up. It connects again
 * after a moment that it draws, which may be too late for its session. */
static void session_doubt(struct library_world *world, const struct library_link *link) {
    int64_t paused_ns = world->clients[link->client].paused_until_ns;
    int64_t until_ns = paused_ns + world->settings.lease_ms * CLOCK_NS_PER_MS;
    if (link->server.server->kind != &ZOOKEEPER_KIND || paused_ns == 0 || settle_now_ns(world) > until_ns) return;
    library_event_add(world, (struct call_event){.kind = EVENT_FAULT,
                                                 .effect = FAULT_ERROR,
                                                 .fault = CHOICE_PAUSE,
                                                 .client = link->client,
                                                 .until_ns = LATE_FOR_EVER});
}

static bool link_hear_end(struct library_world *world, struct library_link *link) {
    bool was_open = link->fd >= 0;
    /* Also in the very moment in which it would go on. */
    bool request = link->requests.count > 0 && link->requests_held_until_ns >= settle_now_ns(world);
    bool answer = link->answers.count > 0 && link->answers_held_until_ns >= settle_now_ns(world);
    bool any = link_hear_program(link);
    if (!was_open || link->fd >= 0) return any;
    if (request || answer) end_note(world, link->client, answer);
    else session_doubt(world, link);
    return any;
}

/* The answer to a plain request is delivered with it; one to an earlier request, which waits, is not. */
static bool link_hear(struct library_world *world, struct library_link *link, bool program_spoke) {
    bool any = link_deliver_rest(link);
    any |= program_spoke && link_hear_end(world, link);
    while (library_request_is_due(world, link) && byte_queue_is_plain(&link->requests)) {
        bool waits = link->answers.count > 0;
        library_request_arrives(world, link);
        any = true;
        if (!waits && link->answers.count == 1 && library_answer_is_due(world, link)) link_deliver_answer(link);
    }
    for (; library_answer_is_due(world, link) && byte_queue_is_plain(&link->answers); any = true)
        link_deliver_answer(link);
    return any;
}

/* The end of a connection that its program has closed reaches the server behind what was sent before it. */
static bool links_close(struct library_world *world) {
    bool any = false;
    for (int number = 0; number < LIBRARY_CLIENTS; number++)
        for (int each = 0; each < world->clients[number].link_count; each++) {
            struct library_link *link = &world->clients[number].links[each];
            bool arrives = link->requests.count > 0 && !world->down[link->node];
            if (link->ended || link->fd >= 0 || arrives) continue;
            link_end(link);
            servers_hear(world, link->server.server);
            any = true;
        }
    return any;
}

static bool client_hear(struct library_world *world, int number) {
    struct library_client *client = &world->clients[number];
    bool any = false;
    bool spoke = client->program.has_run || world->offer.is_tcp;
    if (!client->runs) return false;
    client->program.has_run = false;
    struct program_news news = {0};
    if (spoke) news = news_of(world, client);
    links_take(world, number, &news);
    for (int each = 0; each < client->link_count; each++)
        any |= link_hear(world, &client->links[each], news.speaks[each]);
    links_number(world, number);
    return (spoke && world->settings.protocol->hear(world, number)) || any;
}

bool library_settle(struct library_world *world) {
    for (bool any = true; any && !world->search.reason[0];) {
        any = false;
        for (int node = 0; node < world->settings.nodes; node++)
            if (server_has_news(&world->servers[node])) any |= servers_hear(world, &world->servers[node]);
        for (int client = 0; client < LIBRARY_CLIENTS && !world->search.reason[0]; client++) {
            any |= program_run(world, client);
            any |= client_hear(world, client);
        }
        any |= links_close(world);
    }
    return !world->search.reason[0];
}

/* --- time --- */

static int64_t earlier(int64_t one, int64_t other, int64_t now) {
    return other > now && other < one ? other : one;
}

static int64_t servers_next_ns(const struct library_world *world) {
    int64_t next = INT64_MAX;
    for (int node = 0; node < world->settings.nodes; node++)
        next = earlier(next, server_deadline_ns(&world->servers[node]), settle_now_ns(world));
    return next;
}

static int64_t link_next_ns(const struct library_link *link, int64_t now, int64_t next) {
    if (link->ended) return next;
    if (link->requests.count > 0) next = earlier(next, link->requests_held_until_ns, now);
    if (link->answers.count > 0) next = earlier(next, link->answers_held_until_ns, now);
    return earlier(next, link->block_until_ns, now);
}

int64_t library_next_ns(const struct library_world *world) {
    int64_t now = settle_now_ns(world), next = INT64_MAX;
    for (int number = 0; number < LIBRARY_CLIENTS; number++) {
        const struct library_client *client = &world->clients[number];
        for (int each = 0; each < client->link_count; each++) next = link_next_ns(&client->links[each], now, next);
        if (!client->runs) continue;
        next = earlier(next, client->paused_until_ns, now);
        if (!library_is_paused(world, number)) next = earlier(next, hosted_deadline_ns(&client->program), now);
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++) {
            next = earlier(next, client->threads[thread].idle_until_ns, now);
            if (client->threads[thread].asked) next = earlier(next, client->threads[thread].cancel_at_ns, now);
        }
    }
    bool server_acts = next == INT64_MAX && servers_next_ns(world) < INT64_MAX;
    return server_acts ? now + world->settings.lease_ms * CLOCK_NS_PER_MS : next;
}

static bool library_clock_set(struct library_world *world, int64_t mono_ns) {
    bool any = false;
    atomic_store(&world->page->mono_ns, mono_ns);
    for (int node = 0; node < world->settings.nodes; node++) {
        struct library_server *server = &world->servers[node];
        server_clock_moved(server);
        if (!owes_nothing(world, server, true)) any |= servers_hear(world, server);
    }
    return any;
}

void library_clock_move(struct library_world *world, int64_t mono_ns) {
    for (int64_t next; (next = servers_next_ns(world)) < mono_ns;)
        if (library_clock_set(world, next)) return;
    library_clock_set(world, mono_ns);
}

/* --- without choices --- */

static bool deliver_all(struct library_world *world) {
    bool any = false;
    for (int number = 0; number < LIBRARY_CLIENTS; number++) {
        struct library_client *client = &world->clients[number];
        for (int each = 0; each < client->link_count; each++) {
            struct library_link *link = &client->links[each];
            for (; library_request_is_due(world, link); any = true) library_request_arrives(world, link);
            for (; library_answer_is_due(world, link); any = true) link_deliver_answer(link);
        }
    }
    return any;
}

static bool drain_to_quiet(struct library_world *world) {
    while (library_settle(world) && deliver_all(world)) continue;
    return !world->search.reason[0];
}

bool library_drain(struct library_world *world, int client, int64_t limit_ms) {
    int64_t until_ns = settle_now_ns(world) + limit_ms * CLOCK_NS_PER_MS;
    while (drain_to_quiet(world)) {
        if (world->clients[client].control == 0) return true;
        int64_t next = library_next_ns(world);
        if (next > until_ns) return false;
        library_clock_move(world, next);
    }
    return false;
}

bool library_drain_until(struct library_world *world, int64_t mono_ns, bool notes) {
    while (drain_to_quiet(world)) {
        int64_t next = library_next_ns(world);
        if (notes) library_leases_note(world);
        if (settle_now_ns(world) >= mono_ns) return true; /* a program that asks again and again has moved it further */
        library_clock_move(world, next < mono_ns ? next : mono_ns);
        if (settle_now_ns(world) == mono_ns) return drain_to_quiet(world);
    }
    return false;
}
