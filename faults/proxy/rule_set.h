/* The proxy's rules, and what adding and removing one does to links and connections. */
#pragma once

#include "faults/proxy/proxy.h"

/* The rule of that name, even when it was removed; NULL: there never was one. */
struct rule *rule_set_find(const struct proxy *proxy, struct span name);
/* The proxy owns the rule from here on. It replaces a removed rule of its name; an active one must not exist. */
void rule_set_add(struct proxy *proxy, struct rule *rule);
/* Deactivates the rule: what it held goes on, connections that lost bytes in its black hole are closed. */
void rule_set_remove(struct proxy *proxy, struct rule *rule);
/* Lets at most the first `most` held messages go on, returns how many. */
size_t rule_set_release(struct proxy *proxy, struct rule *rule, size_t most);
void rule_set_close(struct proxy *proxy);
