#include "harness/library/library_link.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"

enum { PIECE = 16384 };

/* --- doors --- */

bool link_door_open(struct link_door *door, const char *address, struct address_error *error) {
    door->fd =
        address_parse(address, strlen(address), &door->address, error) ? address_listen(&door->address, error) : -1;
    return door->fd >= 0;
}

void link_door_refuse(struct link_door *door) {
    if (door->fd >= 0) close(door->fd);
    door->fd = -1;
}

void link_door_close(struct link_door *door) {
    link_door_refuse(door);
    address_remove(&door->address);
}

uint16_t link_door_port(const struct link_door *door) {
    const char *colon = door->address.text[0] == '/' ? NULL : strrchr(door->address.text, ':');
    return colon ? (uint16_t)atoi(colon + 1) : 0;
}

/* --- connections --- */

bool library_link_accept(struct library_link *link, const struct link_door *door, struct library_server *server) {
    int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return false;
    address_set_nodelay(fd);
    *link = (struct library_link){.fd = fd, .block_until_ns = INT64_MAX, .server = {.server = server, .fd = -1}};
    byte_queue_begin(&link->requests, server->kind->requests);
    byte_queue_begin(&link->answers, server->kind->answers);
    return true;
}

/* Nobody is there to hear them. */
static void answers_drop(struct library_link *link) {
    for (; link->answers.count > 0; byte_queue_drop(&link->answers))
        heard_answer(&link->heard, byte_queue_first(&link->answers), false);
}

void link_cut(struct library_link *link) {
    if (link->fd >= 0) close(link->fd);
    link->fd = -1;
    link->stirred = true;
    answers_drop(link);
    heard_end(&link->heard);
    free(link->unread);
    link->unread = NULL;
    link->unread_length = 0;
}

void link_end(struct library_link *link) {
    link_cut(link);
    channel_close(&link->server);
    if (link->observer && !link->ended) link->observer->ended(link->observer->context, link);
    byte_queue_free(&link->requests);
    byte_queue_free(&link->answers);
    link->requests.count = link->answers.count = 0;
    link->block_until_ns = INT64_MAX;
    link->ended = true;
}

static void not_spoken(const struct library_link *link, const char *what) {
    char reason[HOSTED_REASON];
    snprintf(reason, sizeof reason, "%s is not %s", what, link->requests.format->title);
    server_give_up(link->server.server, reason);
}

/* A handshake record of TLS (RFC 8446, 5.1), where a message of the service's own protocol would begin. */
static bool is_tls(const struct byte_queue *before, const char *bytes, ssize_t count) {
    return before->length == 0 && count > 2 && bytes[0] == 0x16 && bytes[1] == 0x03;
}

bool link_hear_program(struct library_link *link) {
    char bytes[PIECE];
    bool any = false;
    while (link->fd >= 0) {
        ssize_t got = recv(link->fd, bytes, sizeof bytes, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return any;
        any = link->stirred = true; /* it can write again */
        int before = link->requests.count;
        if (is_tls(&link->requests, bytes, got))
            server_give_up(link->server.server, "a program speaks TLS to it, which is not followed: let it connect "
                                                "without");
        if (got > 0) byte_queue_add(&link->requests, bytes, (size_t)got);
        else link_cut(link);
        for (; link->observer && before < link->requests.count; before++)
            link->observer->spoken(link->observer->context, link);
        if (link->requests.broken) not_spoken(link, "a program sends it what");
    }
    return any;
}

/* The program sees the end when it has seen every answer before. */
static void end_pass(struct library_link *link) {
    if (link->server.ended && link->answers.count == 0 && link->unread_length == 0) link_cut(link);
}

/* Those behind the first `before`. */
static void answers_tell(const struct library_link *link, int before) {
    size_t at = 0;
    for (int each = 0; each < link->answers.count; at += link->answers.messages[each++].length)
        if (each >= before)
            link->observer->answered(link->observer->context, link,
                                     (struct span){link->answers.bytes + at, link->answers.messages[each].length});
}

bool link_hear_server(struct library_link *link) {
    char bytes[PIECE];
    bool any = false, open = !link->server.ended;
    int before = link->answers.count;
    if (link->ended) return false;
    for (size_t got; (got = channel_poll(&link->server, bytes, sizeof bytes)) > 0; any = true) {
        byte_queue_add(&link->answers, bytes, got);
        link->block_until_ns = INT64_MAX;
    }
    if (link->answers.broken) not_spoken(link, "what it answers");
    if (link->observer) answers_tell(link, before);
    link->owed -= link->answers.count - before;
    if (open && link->server.ended) byte_queue_end(&link->answers), end_pass(link), any = true;
    if (link->fd < 0) answers_drop(link);
    return any;
}

/* --- messages --- */

/* The first word of an array of bulk strings, in which RESP has commands. */
static const char *bulk_find(struct span bytes) {
    const char *at = bytes.length > 0 && bytes.bytes[0] == '*' ? memchr(bytes.bytes, '$', bytes.length) : NULL;
    const char *line = at ? memchr(at, '\n', bytes.length - (size_t)(at - bytes.bytes)) : NULL;
    return line ? line + 1 : NULL;
}

/* The statement of PostgreSQL's Query, or of a Parse, behind its own name. */
static const char *statement_find(struct span bytes) {
    enum { HEAD = 5 };
    if (bytes.length <= HEAD || (bytes.bytes[0] != 'Q' && bytes.bytes[0] != 'P')) return NULL;
    if (bytes.bytes[0] == 'Q') return bytes.bytes + HEAD;
    const char *name_end = memchr(bytes.bytes + HEAD, '\0', bytes.length - HEAD);
    return name_end ? name_end + 1 : NULL;
}

const char *link_request_command(const struct library_link *link, char command[LINK_COMMAND]) {
    struct span bytes = byte_queue_first(&link->requests);
    bool is_sql = link->requests.format == &POSTGRES_REQUEST_FORMAT;
    const char *word = is_sql ? statement_find(bytes) : bulk_find(bytes), *end = bytes.bytes + bytes.length;
    size_t length = 0;
    while (word && word + length < end && length < LINK_COMMAND - 1 && isalpha((unsigned char)word[length])) {
        command[length] = (char)toupper((unsigned char)word[length]);
        length++;
    }
    command[length] = '\0';
    return command;
}

void link_deliver_request(struct library_link *link, int64_t now_ns) {
    const struct queued_message *message = &link->requests.messages[0];
    if (message->subscribes) link->is_push = true;
    link->has_waited |= message->wait_ms > 0;
    if (message->wait_ms > 0) link->block_until_ns = now_ns + (message->wait_ms + 1) * CLOCK_NS_PER_MS;
    link->asked_sort = message->sort;
    (void)link_request_command(link, link->asked_command);
    if (link->requests.format == &POSTGRES_REQUEST_FORMAT)
        postgres_answer_expect(&link->answers.state, byte_queue_first(&link->requests));
    if (link->observer) link->observer->executed(link->observer->context, link, byte_queue_first(&link->requests));
    channel_send(&link->server, byte_queue_first(&link->requests));
    link->owed++;
    byte_queue_drop(&link->requests);
}

void link_refuse_request(struct library_link *link, const char *answer) {
    if (link->observer) link->observer->refused(link->observer->context, link);
    byte_queue_drop(&link->requests);
    byte_queue_add(&link->answers, answer, strlen(answer));
}

bool link_deliver_rest(struct library_link *link) {
    size_t before = link->unread_length;
    for (ssize_t sent; link->unread_length > 0;) {
        sent = send(link->fd, link->unread, link->unread_length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        link->stirred = true;
        if (sent < 0 && errno != EAGAIN) link->unread_length = 0; /* the program has closed it */
        if (sent < 0) break;
        link->unread_length -= (size_t)sent;
        memmove(link->unread, link->unread + sent, link->unread_length);
    }
    if (before > 0) end_pass(link);
    return link->unread_length < before;
}

void link_deliver_answer(struct library_link *link) {
    struct span bytes = byte_queue_first(&link->answers);
    heard_answer(&link->heard, bytes, link->fd >= 0);
    if (link->observer && link->fd >= 0) link->observer->delivered(link->observer->context, link);
    if (link->fd >= 0) {
        link->unread = realloc(link->unread, link->unread_length + bytes.length);
        if (!link->unread) abort();
        memcpy(link->unread + link->unread_length, bytes.bytes, bytes.length);
        link->unread_length += bytes.length;
    }
    byte_queue_drop(&link->answers);
    if (!link_deliver_rest(link)) end_pass(link);
}
