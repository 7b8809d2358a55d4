/* Where to listen or connect: a unix socket by its path ("/…"), or host:port with a numeric host or localhost. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT = 128 };

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
    char text[ADDRESS_TEXT];
};

struct address_error {
    char text[256];
};

/* False with a sentence in *error. Makes no DNS lookup. */
bool address_parse(const char *text, size_t length, struct address *address, struct address_error *error);

/* Returns a non-blocking socket that listens, -1 with a sentence in *error. A TCP address must be a loopback one: only
 * this machine may connect. Port 0 is replaced by the free port that was taken. */
int address_listen(struct address *address, struct address_error *error);

enum address_state {
    ADDRESS_CONNECTED,
    ADDRESS_CONNECTING,
    ADDRESS_BUSY,    /* try again later */
    ADDRESS_REFUSED, /* nobody listens there */
    ADDRESS_FAILED,
};
/* Begins to connect a non-blocking socket. *fd is -1 unless it is connected or connecting. */
enum address_state address_connect(const struct address *address, int *fd);
/* Sets TCP_NODELAY: what is written is sent at once. */
void address_set_nodelay(int fd);
/* Removes the socket's file, if the address has one. */
void address_remove(const struct address *address);
