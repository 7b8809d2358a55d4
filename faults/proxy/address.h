/* Where to listen or connect: a unix socket by its path ("/…"), or host:port with a numeric host or localhost. */
#ifndef LOCKSTORM_ADDRESS_H
#define LOCKSTORM_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "faults/proxy/resp.h"

enum { ADDRESS_TEXT = 128 };

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
    char text[ADDRESS_TEXT];
};

struct address_error {
    char text[256];
};

/* False with a sentence in *error. Nothing is looked up by name. */
bool address_parse(struct span text, struct address *address, struct address_error *error);

/* A socket that does not block, -1 with a sentence in *error. Listening is for this machine only: a TCP address must be
 * a loopback one; port 0 becomes the port that was free. */
int address_listen(struct address *address, struct address_error *error);

enum address_state { ADDRESS_CONNECTED, ADDRESS_CONNECTING, ADDRESS_BUSY /* try again later */, ADDRESS_FAILED };
/* A socket that does not block and begins to connect. *fd is -1 unless it is connected or connecting. */
enum address_state address_connect(const struct address *address, int *fd);
/* What is written goes out at once. */
void address_set_prompt(int fd);
/* The socket's file, if there is one, is removed. */
void address_remove(const struct address *address);

#endif
