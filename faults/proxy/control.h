/* The control port: commands as RESP requests on a unix socket, answered in order. faults/proxy/README.md describes
 * them for users. */
#pragma once

#include "faults/proxy/proxy.h"

struct control;

/* Listens at the path; NULL with a sentence in *error. The proxy must outlive it. */
struct control *control_open(struct proxy *proxy, const char *path, struct address_error *error);
/* Closes all connections and frees it. */
void control_close(struct control *control);
