/* What a client has left behind when an acquire was refused or a release has come back ok: its entries in the servers'
 * data, and its subscriptions. Looked for where liveness is judged; the history gets a HISTORY_RESIDUE of each kind.
 *
 * An entry is a key, the value of a string, a field of a hash or an element of a collection that this client alone has
 * sent, of eight letters at least: not what the clients of the first schedule, who have other random numbers, send,
 * too. Not looked for: on a server where a command of the client may have been lost, come late or come twice, or whose
 * connections were lost; and of a client that does not know the outcome of an operation. */
#pragma once

#include "harness/simulation/world_state.h"

/* Keeps what all clients have sent in the first schedule. */
void client_traces_compare_with(struct world *world);
/* A command of the client to a node may have been lost, come late or come twice. */
void client_traces_excuse(struct explored_client *client, int node);
/* Looks for traces of a client that has taken a step, if an operation that should have left none has ended in it. */
void client_traces_look(struct world *world, struct explored_client *client);
