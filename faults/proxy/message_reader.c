#include "faults/proxy/message_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "faults/proxy/disposition.h"
#include "faults/proxy/server_wait.h"
#include "harness/scheduler/clock.h"

static const char NOT_RESP[] = "its bytes are not RESP";
static const char NO_REPLIES[] = "a request makes it one that does not carry requests and replies";

/* --- opaque connections --- */

static void note_opaque(struct proxy_connection *connection, const char *why) {
    struct proxy_link *link = connection->link;
    if (connection->opaque_counted) return;
    connection->opaque_counted = true;
    connection->proxy->opaque++;
    if (!link->opaque_text) {
        char text[512];
        snprintf(text, sizeof text, "%.256s: a connection is passed on byte by byte from here on: %s", link->name, why);
        link->opaque_text = proxy_text(connection->proxy, text);
    }
    actor_append(&connection->proxy->actor, (struct history_record){.kind = HISTORY_NOTE, .name = link->opaque_text});
}

static void make_opaque(struct flow *flow, const char *why) {
    flow->opaque = true;
    flow->disposition = DISPOSITION_UNDECIDED;
    note_opaque(flow->connection, why);
}

/* Whether the server's next message answers a request that makes the connection opaque. */
static bool replies_end(const struct flow *flow) {
    return flow->direction == TO_CLIENT && flow->connection->matcher.opaque_requested &&
           resp_is_between(&flow->scanner) && reply_matcher_is_opaque(&flow->connection->matcher);
}

/* --- messages --- */

enum { SERVER_LATE_MS = 1 }; /* a server answers when more than its limit has passed */

/* A message has come as a whole, and goes on after delay_ns: a server then waits by its own clock, or has answered. */
static void note_server_wait(struct flow *flow, struct span message, int64_t delay_ns) {
    struct proxy_connection *connection = flow->connection;
    struct timer_heap *timers = &connection->proxy->timers;
    int64_t wait_ms = flow->direction == TO_SERVER ? server_wait_ms(&flow->scanner, message) : 0;
    if (wait_ms > 0) {
        int64_t sent_ns = timer_heap_later_ns(proxy_now_ns(connection->proxy), delay_ns);
        int64_t due_ns = timer_heap_later_ns(sent_ns, (wait_ms + SERVER_LATE_MS) * CLOCK_NS_PER_MS);
        if (due_ns != TIMER_HEAP_NEVER) timer_heap_set(timers, &connection->server_wait, due_ns);
    } else if (flow->direction == TO_CLIENT && connection->matcher.answered == connection->matcher.requested) {
        timer_heap_remove(timers, &connection->server_wait);
    }
}

/* Bytes that are no message are dealt with as if they were one. */
static void take_raw(struct flow *flow, struct span part) {
    if (part.length == 0) return;
    if (flow->black_hole) {
        disposition_lose(flow, part.length);
        return;
    }
    disposition_decide_raw(flow);
    disposition_apply(flow, part, true);
}

static void take_part(struct flow *flow, struct span part, bool is_last) {
    bool undecided = flow->disposition == DISPOSITION_UNDECIDED;
    int64_t delay_ns = 0;
    if (is_last && undecided && !flow->head && !disposition_is_watched(flow)) { /* nearly always */
        disposition_count(flow);
        flow_pass(flow, part);
    } else {
        if (undecided) disposition_decide(flow, part);
        delay_ns = flow->delay_ns;
        flow_drop_head(flow);
        disposition_apply(flow, part, is_last);
        if (is_last && !flow->in_matcher) disposition_count(flow);
        if (is_last) flow->disposition = DISPOSITION_UNDECIDED;
    }
    if (is_last && flow->connection->link->option == LINK_TIMED) note_server_wait(flow, part, delay_ns);
    if (is_last && flow->direction == TO_SERVER && flow->connection->matcher.opaque_requested)
        make_opaque(flow, NO_REPLIES);
}

static bool has_messages(const struct flow *flow) {
    return !flow->opaque && !flow->input_closed && !flow->black_hole;
}

/* Deals with bytes of the read buffer. The first `scanned` are the head that was kept from before. */
static void take(struct flow *flow, struct span bytes, size_t scanned) {
    size_t start = 0;
    for (size_t at = scanned; at < bytes.length && has_messages(flow);) {
        size_t used;
        if (replies_end(flow)) {
            make_opaque(flow, NO_REPLIES);
            break;
        }
        enum resp_result result = resp_scan(&flow->scanner, bytes.bytes + at, bytes.length - at, &used);
        at += used;
        if (result == RESP_BROKEN) {
            make_opaque(&flow->connection->flows[TO_SERVER], NOT_RESP);
            make_opaque(&flow->connection->flows[TO_CLIENT], NOT_RESP);
        }
        if (result != RESP_WHOLE) continue;
        take_part(flow, (struct span){bytes.bytes + start, at - start}, true);
        start = at;
    }
    struct span rest = {bytes.bytes + start, bytes.length - start};
    if (rest.length == 0) return;
    bool undecided = flow->disposition == DISPOSITION_UNDECIDED;
    if (!has_messages(flow)) {
        flow_drop_head(flow);
        take_raw(flow, rest);
    } else if (undecided && rest.length < MESSAGE_HEAD && disposition_is_watched(flow)) {
        flow_keep_head(flow, rest);
    } else {
        take_part(flow, rest, false);
    }
}

/* Lets the kept head of a message pass that will not be completed. */
static void pass_head(struct flow *flow) {
    if (!flow->head) return;
    /* No other flow uses the read buffer now, and what passes from it is written before it is used again. */
    char *buffer = flow->connection->proxy->buffer;
    size_t length = flow->head_length;
    memcpy(buffer, flow->head, length);
    flow_drop_head(flow);
    flow_pass(flow, (struct span){buffer, length});
}

/* --- reading --- */

/* The end of the stream passes. */
static void take_end(struct flow *flow) {
    if (flow->black_hole) {
        flow->end_lost = true;
        return;
    }
    pass_head(flow);
    flow_join_aside(flow);
    if (!flow->input_closed) flow_put_end(flow, CHUNK_END);
}

void message_reader_read(struct flow *flow) {
    char *buffer = flow->connection->proxy->buffer;
    size_t before = flow->head_length;
    if (before) memcpy(buffer, flow->head, before);
    int source = flow->connection->io[flow->direction == TO_SERVER ? SIDE_CLIENT : SIDE_SERVER].fd;
    ssize_t got = recv(source, buffer + before, READ_SIZE, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got == READ_SIZE && flow->direction == TO_CLIENT) /* the server may have more than its socket took */
        proxy_link_add_activity(flow->connection->link, TARGET_HAS_INPUT);
    if (got <= 0) {
        flow->source_ended = true;
        take_end(flow);
    } else if (flow->black_hole) {
        disposition_lose(flow, (size_t)got);
    } else {
        take(flow, (struct span){buffer, before + (size_t)got}, before);
    }
    flow_flush(flow);
}
