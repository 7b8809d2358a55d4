/* Links: opening and closing a place to listen and the connections that come that way. */
#pragma once

#include "faults/proxy/proxy.h"

/* Listens and adds the link to the proxy's; NULL with a sentence in *error. The proxy owns it. */
struct proxy_link *link_add(struct proxy *proxy, const char *name, const struct address *listen,
                            const struct address *target, enum link_option option, struct address_error *error);
/* Deals with all events that stepped links have collected; returns how many. Call it until it returns 0.
 *
 * On a stepped link, in virtual time and once replies may stay away, an event is only noted when it comes. This
 * function deals with events link by link, connection by connection: an order that does not depend on when the machine
 * noticed them. */
size_t link_step_all(struct proxy *proxy);
/* Closes and frees the link and its connections. */
void link_remove(struct proxy_link *link);
/* Closes its connections, returns how many. */
size_t link_close_connections(struct proxy_link *link);
/* Reads the proxy's rules again: some have been added or removed. */
void link_refresh(struct proxy_link *link);

/* To be called after anything that may have changed what a connection waits for. Closes and frees the connection when
 * nothing is left to do. */
void connection_review(struct proxy_connection *connection);
