/* The proxy's rules as a set: what happens to links and connections when one comes or goes. */
#ifndef LOCKSTORM_RULES_H
#define LOCKSTORM_RULES_H

#include "faults/proxy/flow.h"

/* The rule of that name, removed ones too; NULL: there never was one. */
struct rule *rules_find(const struct proxy *proxy, struct span name);
/* Takes the rule over. It replaces a removed one of its name; an active one must not be there. */
void rules_add(struct proxy *proxy, struct rule *rule);
/* Heals: what was held goes on, connections that lost bytes in a black hole are closed. */
void rules_remove(struct proxy *proxy, struct rule *rule);
/* Lets the first `most` held messages go, returns how many there were. */
size_t rules_release(struct proxy *proxy, struct rule *rule, size_t most);
void rules_close(struct proxy *proxy);

#endif
