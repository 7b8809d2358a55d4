/* One direction of a connection, as it is written: bytes in order, from the proxy's one read buffer straight to the
 * socket when that takes them. What cannot be written yet stands in a queue: because the receiver is slow, because a
 * rule holds or delays it, or because something in front of it waits. The end of the stream waits in the queue too.
 *
 * Reading stops while more than FLOW_QUEUE_MAX bytes wait: a held direction fills the sender's buffers, not the proxy's
 * memory. */
#pragma once

#include "faults/proxy/proxy.h"

enum { FLOW_QUEUE_MAX = 1 << 20 };

/* `on_due` is called when the first chunk's delay is over. */
void flow_open(struct flow *flow, struct proxy_connection *connection, enum direction direction, bool opaque,
               void (*on_due)(struct timer *timer));
void flow_close(struct flow *flow);

/* Whether the sender's side is to be read now. */
bool flow_wants_to_read(const struct flow *flow);
/* Writes what may be written. */
void flow_flush(struct flow *flow);

/* Puts a message, or a part of it, at the end of the queue: `holder` holds it (NULL: no rule does), due_ns delays it
 * (0: not). */
void flow_put(struct flow *flow, struct span bytes, struct rule *holder, int64_t due_ns);
void flow_put_end(struct flow *flow, enum chunk_kind kind);
/* Lets bytes of the read buffer pass; adjacent ones are written together. */
void flow_pass(struct flow *flow, struct span bytes);
/* Sets a copy aside, and moves what was set aside to the end of the queue. */
void flow_put_aside(struct flow *flow, struct span bytes);
void flow_join_aside(struct flow *flow);
/* Throws away what waits; returns how many bytes. */
size_t flow_discard(struct flow *flow);

/* Keeps the head of an undecided message, and frees it. The first head_length bytes are kept already. */
void flow_keep_head(struct flow *flow, struct span head);
void flow_drop_head(struct flow *flow);

/* Takes a chunk out of its holder's list: it may be written. */
void chunk_release(struct chunk *chunk);
