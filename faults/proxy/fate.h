/* What becomes of each message: rules are asked when its head is there - all of it, or MESSAGE_HEAD bytes - and what
 * they say is carried out on every part of it as it comes.
 *
 * Of the rules that match, those that delay or slow down add up; of the others the first that was added wins, and only
 * it fires. While a message waits for its successor (reorder), no other is put aside or duplicated. */
#ifndef LOCKSTORM_FATE_H
#define LOCKSTORM_FATE_H

#include "faults/proxy/flow.h"

/* Deals with bytes of the read buffer, of which the first `scanned` are the head that was kept from before. */
void fate_take(struct flow *flow, struct span bytes, size_t scanned);
/* Gives up on what was kept of a message that will not be completed: it passes as it is. */
void fate_take_rest(struct flow *flow);

/* A black hole takes a direction over: what waits in it is lost, too. */
void fate_enter_black_hole(struct flow *flow, struct rule *rule);
/* The rule is no more. `other` is another one that swallows this direction, or NULL. */
void fate_forget_rule(struct flow *flow, const struct rule *rule, struct rule *other);
/* Bytes are lost in the flow's black hole. */
void fate_lose(struct flow *flow, size_t length);

#endif
