/* What a renewal changes on a server, seen there and not by its outcome: the history gets a record for each command of
 * a watchdog, or of a renewal that a client has invoked (HISTORY_SERVER_RENEWAL). */
#pragma once

#include "harness/simulation/world_state.h"

/* Keeps the bytes of what a client sends: by them a key is known as its own. */
void server_renewal_keep(struct explored_client *client, const char *command, size_t length);

/* Call it before a command arrives. The leading server's keys, or NULL: the command renews nothing, or does not name
 * the lock. Give it to server_renewal_record. */
redisReply *server_renewal_before(struct world *world, const struct sent_command *command);
/* Call it after the command; `heard`: the server has executed it. Frees `before`, which may be NULL. */
void server_renewal_record(struct world *world, const struct sent_command *command, redisReply *before, bool heard);
