/* Reads one direction of a connection and cuts it into messages for disposition.h.
 *
 * A connection becomes opaque when it carries something that is not RESP, or no longer requests and replies: from then
 * on its bytes pass as they come, and a note in the history says so once for each link. */
#pragma once

#include "faults/proxy/flow.h"

/* Reads from the sender once, deals with what came and writes what may be written. */
void message_reader_read(struct flow *flow);
