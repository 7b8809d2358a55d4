#include "harness/simulation/world.h"

#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/grown.h"

/* What a renewal changes on a server, seen there and not by its outcome: the history gets a record for each command of
 * a watchdog, or of a renewal that a client has invoked (HISTORY_SERVER_RENEWAL). */

static const int64_t NEVER = -1; /* expires */

void server_renewal_keep(struct explored_client *client, const char *command, size_t length) {
    struct sent_bytes *sent = &client->sent;
    sent->bytes = grown(sent->bytes, sent->length + length, &sent->room, 1);
    memcpy(sent->bytes + sent->length, command, length);
    sent->length += length;
}

/* --- whose a key is --- */

/* Whether a client has sent one of the owners' marks in a key. */
static bool has_marked(const struct explored_client *client, const redisReply *key) {
    bool marked = false;
    for (size_t each = NODE_KEY_TEXTS; each < key->elements; each++)
        marked |= sent_contains(&client->sent, key->element[each]->str, key->element[each]->len);
    return marked;
}

/* The other client whose key it is; -1: it is the client's own, or nobody knows. */
static int other_owner(const struct world *world, int client, const redisReply *key) {
    if (has_marked(&world->clients[client], key)) return -1;
    for (int each = 0; each < world->client_count; each++)
        if (has_marked(&world->clients[each], key)) return each;
    return -1;
}

/* --- what has changed --- */

static bool same_text(const redisReply *one, const redisReply *other) {
    return one->len == other->len && memcmp(one->str, other->str, one->len) == 0;
}

static const redisReply *key_named(const redisReply *keys, const redisReply *name) {
    for (size_t each = 0; each < keys->elements; each++)
        if (same_text(keys->element[each]->element[NODE_KEY_NAME], name)) return keys->element[each];
    return NULL;
}

static bool key_changed(const redisReply *before, const redisReply *after) {
    return before->element[NODE_KEY_EXPIRY]->integer != after->element[NODE_KEY_EXPIRY]->integer ||
           !same_text(before->element[NODE_KEY_DUMP], after->element[NODE_KEY_DUMP]);
}

static bool key_lengthened(const redisReply *before, const redisReply *after) {
    int64_t was_ms = before->element[NODE_KEY_EXPIRY]->integer, is_ms = after->element[NODE_KEY_EXPIRY]->integer;
    return was_ms != NEVER && (is_ms == NEVER || is_ms > was_ms);
}

/* Whether a key that had a lease or less to live has longer now. */
static bool key_prolonged(const struct world *world, const redisReply *before, const redisReply *after,
                          int64_t now_ms) {
    const redisReply *was = key_named(before, after->element[NODE_KEY_NAME]);
    return was && key_lengthened(was, after) &&
           was->element[NODE_KEY_EXPIRY]->integer - now_ms <= world->settings.lease_ms;
}

static int64_t longer(int64_t one_ms, int64_t other_ms) {
    if (one_ms == NEVER || other_ms == NEVER) return NEVER;
    return one_ms > other_ms ? one_ms : other_ms;
}

/* How long a key of the client's own lives. A string or hash without an end and without its mark, such as a counter, is
 * not one of these; of what may hold more than one client's data nobody knows, and it counts as its own. */
static int64_t own_left_ms(const struct world *world, int client, const redisReply *key, int64_t now_ms) {
    int64_t expiry_ms = key->element[NODE_KEY_EXPIRY]->integer;
    if (other_owner(world, client, key) >= 0) return 0;
    bool known = key->elements > NODE_KEY_TEXTS;
    if (expiry_ms == NEVER) return !known || has_marked(&world->clients[client], key) ? NEVER : 0;
    return expiry_ms > now_ms ? expiry_ms - now_ms : 0;
}

static void effect_add(const struct world *world, int client, const redisReply *before, const redisReply *after,
                       struct history_record *record) {
    const redisReply *was = key_named(before, after->element[NODE_KEY_NAME]);
    if (!was) record->flags |= HISTORY_FLAG_MADE;
    if (!was || key_changed(was, after)) record->outcome = OUTCOME_OK;
    if (!was || !key_lengthened(was, after)) return;
    int other = other_owner(world, client, was);
    if (other >= 0) record->extra = world->clients[other].name;
}

/* --- records --- */

redisReply *server_renewal_before(struct world *world, const struct sent_command *command) {
    bool heard = command->renews && command->node != WORLD_RESOURCE && !world->clients[command->client].gone &&
                 memmem(command->bytes, command->length, WORLD_LOCK_NAME, sizeof WORLD_LOCK_NAME - 1);
    return heard ? node_keys(world_node(world, command->node), false) : NULL;
}

void server_renewal_record(struct world *world, const struct sent_command *command, redisReply *before, bool heard) {
    const struct explored_client *client = &world->clients[command->client];
    struct node *server = world_node(world, command->node);
    if (!before) return;
    if (heard) {
        redisReply *after = node_keys(server, false);
        int64_t now_ms = (server->wall_ns + server->offset_ns) / CLOCK_NS_PER_MS;
        struct history_record record = {.kind = HISTORY_SERVER_RENEWAL,
                                        .outcome = after->elements < before->elements ? OUTCOME_OK : OUTCOME_REFUSED,
                                        .name = world->names.resource,
                                        .op = command->op,
                                        .grant = command->grant};
        int64_t marked_ms = 0;
        bool prolonged = false;
        for (size_t each = 0; each < after->elements; each++) {
            int64_t left_ms = own_left_ms(world, command->client, after->element[each], now_ms);
            effect_add(world, command->client, before, after->element[each], &record);
            record.value = longer(record.value, left_ms);
            if (!has_marked(client, after->element[each]) || longer(marked_ms, left_ms) == marked_ms) continue;
            marked_ms = left_ms;
            prolonged = key_prolonged(world, before, after->element[each], now_ms);
        }
        if (marked_ms == record.value) record.flags |= HISTORY_FLAG_MARKED | (prolonged ? HISTORY_FLAG_PROLONGED : 0);
        const struct actor actor = {.history = world->history, .page = world->page, .id = client->name};
        actor_append(&actor, record);
        freeReplyObject(after);
    }
    freeReplyObject(before);
}
