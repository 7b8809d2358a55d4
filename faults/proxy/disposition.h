/* What becomes of each message. Rules are matched when its head is there - all of it, or MESSAGE_HEAD bytes - and the
 * decision is carried out on every part of the message as it comes.
 *
 * Of the rules that match, delays and rates add up; of the others only the first that was added fires. While a message
 * waits for its successor (reorder), no other message is set aside or duplicated. */
#pragma once

#include "faults/proxy/flow.h"

/* Whether a rule or the reply matcher has to look at the flow's messages when they begin. */
bool disposition_is_watched(const struct flow *flow);
/* Decides on the message that the flow's scanner is in: flow->disposition, the rule and the delay. */
void disposition_decide(struct flow *flow, struct span head);
/* Decides on bytes that are no message. */
void disposition_decide_raw(struct flow *flow);
/* Counts a message that was not watched when it began. */
void disposition_count(struct flow *flow);
/* Carries the decision out on a part of the message; `is_last`: its last part. */
void disposition_apply(struct flow *flow, struct span part, bool is_last);

/* A black hole takes a direction over: what waits in it is lost, too. */
void disposition_enter_black_hole(struct flow *flow, struct rule *rule);
/* Counts bytes that are lost in the flow's black hole. */
void disposition_lose(struct flow *flow, size_t length);
/* The rule is removed. `other` is another rule that swallows this direction, or NULL. */
void disposition_forget_rule(struct flow *flow, const struct rule *rule, struct rule *other);
