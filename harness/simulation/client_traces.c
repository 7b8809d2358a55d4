#include "harness/simulation/world.h"

#include <stdlib.h>
#include <string.h>

/* What a client has left behind when an acquire was refused or a release has come back ok: its entries in the servers'
 * data, and its subscriptions. Looked for where liveness is judged; the history gets a HISTORY_RESIDUE of each kind.
 *
 * An entry is a key, the value of a string, a field of a hash or an element of a collection that this client alone has
 * sent, of eight letters at least: not what the clients of the first schedule, who have other random numbers, send,
 * too. Not looked for: on a server where a command of the client may have been lost, come late or come twice, or whose
 * connections were lost; and of a client that does not know the outcome of an operation. */

void client_traces_compare_with(struct world *world) {
    for (int each = 0; each < world->client_count && !world->compared; each++) {
        struct explored_client *client = &world->clients[each];
        struct sent_bytes first = client->sent;
        client->sent = client->sent_first;
        client->sent.length = 0;
        client->sent_first = first;
    }
    world->compared = true;
}

void client_traces_excuse(struct explored_client *client, int node) {
    if (node != WORLD_RESOURCE) client->excused |= (uint32_t)1 << node;
}

/* Whether a client alone sends a text. */
static bool is_entry(const struct world *world, const struct explored_client *client, const redisReply *text) {
    if (text->type != REDIS_REPLY_STRING || !sent_contains(&client->sent, text->str, text->len)) return false;
    for (int each = 0; each < world->settings.clients; each++) {
        const struct explored_client *other = &world->clients[each];
        bool plays = other != client && each < world->client_count;
        if (sent_contains(&other->sent_first, text->str, text->len)) return false;
        if (plays && sent_contains(&other->sent, text->str, text->len)) return false;
    }
    return true;
}

static int64_t entries_on(struct world *world, const struct explored_client *client, int node) {
    redisReply *keys = node_keys(world_node(world, node), true);
    int64_t entries = 0;
    for (size_t each = 0; each < keys->elements; each++) {
        const redisReply *key = keys->element[each];
        entries += is_entry(world, client, key->element[NODE_KEY_NAME]);
        for (size_t text = NODE_KEY_TEXTS; text < key->elements; text++)
            entries += is_entry(world, client, key->element[text]);
    }
    freeReplyObject(keys);
    return entries;
}

static void trace_left(struct world *world, uint32_t name, int64_t count) {
    if (count > 0) world_record(world, (struct history_record){.kind = HISTORY_RESIDUE, .name = name, .value = count});
}

void client_traces_look(struct world *world, struct explored_client *client) {
    bool looks = world->settings.bound_ms && client->settled != client->work.settled;
    int64_t entries = 0, subscriptions = 0;
    client->settled = client->work.settled;
    if (!looks || client->gone || client->work.doubtful || client->work.grant) return;
    for (int node = 0; node < world->settings.nodes; node++) {
        if (client->excused >> node & 1) continue;
        entries += entries_on(world, client, node);
        subscriptions += client->worker.listeners[node].channels + client->watchdog.listeners[node].channels;
    }
    trace_left(world, client->entries_name, entries);
    trace_left(world, client->subscriptions_name, subscriptions);
}
