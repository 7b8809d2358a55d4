/* Requests that a server answers by itself after a while: BLPOP and the like, with a limit of time. The limit is one of
 * the server's clock, which stands still in virtual time until somebody has a deadline; a client that is ours announces
 * its own, an unmodified library does not. So on TIMED links the proxy does: at that time the server is looked after.
 *
 * Source: the Redis documentation of the blocking commands; handleBlockedClientsTimeout of its timeout.c, which answers
 * when more than the limit has passed. */
#pragma once

#include "faults/proxy/resp.h"

/* How long the server may take over this request by its own clock, in ms; 0: no time, or without a limit. `message` is
 * all of the request. */
int64_t server_wait_ms(const struct resp_scanner *request, struct span message);
