#include "faults/proxy/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "faults/proxy/fate.h"
#include "faults/proxy/link.h"

enum { WRITE_CHUNKS = 64 };

/* --- the queue --- */

static struct chunk *chunk_add(struct flow *flow, struct queue *queue, struct span bytes) {
    struct chunk *chunk = malloc(sizeof *chunk + bytes.length);
    if (!chunk) abort();
    *chunk = (struct chunk){.flow = flow, .length = bytes.length};
    if (bytes.length) memcpy(chunk->bytes, bytes.bytes, bytes.length);
    if (queue->last) queue->last->next = chunk;
    else queue->first = chunk;
    queue->last = chunk;
    queue->bytes += bytes.length;
    flow->connection->proxy->memory_bytes += sizeof *chunk + bytes.length;
    return chunk;
}

void chunk_release(struct chunk *chunk) {
    struct rule *rule = chunk->holder;
    if (!rule) return;
    if (chunk->held_before) chunk->held_before->held_after = chunk->held_after;
    else rule->held_first = chunk->held_after;
    if (chunk->held_after) chunk->held_after->held_before = chunk->held_before;
    else rule->held_last = chunk->held_before;
    rule->held--;
    chunk->holder = NULL;
}

static void chunk_hold(struct chunk *chunk, struct rule *rule) {
    chunk->holder = rule;
    chunk->held_before = rule->held_last;
    if (rule->held_last) rule->held_last->held_after = chunk;
    else rule->held_first = chunk;
    rule->held_last = chunk;
    rule->held++;
}

static void chunk_remove_first(struct flow *flow, struct queue *queue) {
    struct chunk *chunk = queue->first;
    chunk_release(chunk);
    queue->first = chunk->next;
    if (!queue->first) queue->last = NULL;
    queue->bytes -= chunk->length - chunk->sent;
    flow->connection->proxy->memory_bytes -= sizeof *chunk + chunk->length;
    free(chunk);
}

size_t flow_discard(struct flow *flow) {
    size_t bytes = flow->queue.bytes + flow->aside.bytes + flow->run_length;
    while (flow->queue.first) chunk_remove_first(flow, &flow->queue);
    while (flow->aside.first) chunk_remove_first(flow, &flow->aside);
    flow->aside_is_waiting = false;
    flow->run_length = 0;
    agenda_remove(&flow->connection->proxy->agenda, &flow->entry);
    return bytes;
}

/* --- writing --- */

static int receiver(const struct flow *flow) {
    return flow->connection->io[flow->direction == TO_SERVER ? SIDE_SERVER : SIDE_CLIENT].fd;
}

/* How much the receiver took. */
static size_t write_some(struct flow *flow, struct iovec *parts, size_t count) {
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    if (flow->direction == TO_SERVER) link_deal(flow->connection->link, DEALING_HEARD);
    ssize_t sent = count == 1 ? send(receiver(flow), parts->iov_base, parts->iov_len, MSG_NOSIGNAL)
                              : sendmsg(receiver(flow), &message, MSG_NOSIGNAL);
    if (sent >= 0) {
        flow->connection->link->bytes[flow->direction] += (uint64_t)sent;
        return (size_t)sent;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) flow->full = true;
    else if (errno != EINTR) flow->deaf = true;
    return 0;
}

/* Writes the run of bytes that may pass; what the receiver does not take is queued. */
static void write_run(struct flow *flow) {
    struct span run = {flow->run, flow->run_length};
    flow->run_length = 0;
    while (run.length && !flow->queue.first && !flow->full && !flow->deaf) {
        struct iovec part = {(void *)(uintptr_t)run.bytes, run.length};
        size_t sent = write_some(flow, &part, 1);
        run = (struct span){run.bytes + sent, run.length - sent};
    }
    if (run.length && !flow->deaf) chunk_add(flow, &flow->queue, run);
}

static bool is_ready(const struct chunk *chunk, int64_t *now_ns) {
    if (chunk->holder) return false;
    if (chunk->due_ns == 0) return true;
    if (*now_ns < 0) *now_ns = stage_mono_ns(chunk->flow->connection->proxy->actor.stage);
    return chunk->due_ns <= *now_ns;
}

static void write_chunks(struct flow *flow, int64_t *now_ns) {
    struct iovec parts[WRITE_CHUNKS];
    size_t count = 0;
    for (struct chunk *chunk = flow->queue.first; chunk && count < WRITE_CHUNKS; chunk = chunk->next) {
        if (chunk->kind != CHUNK_BYTES || !is_ready(chunk, now_ns)) break;
        parts[count++] = (struct iovec){chunk->bytes + chunk->sent, chunk->length - chunk->sent};
    }
    size_t sent = write_some(flow, parts, count);
    for (size_t each = 0; each < count && sent >= parts[each].iov_len; each++) {
        sent -= parts[each].iov_len;
        chunk_remove_first(flow, &flow->queue);
    }
    if (sent == 0) return;
    flow->queue.first->sent += sent;
    flow->queue.bytes -= sent;
}

static void end_here(struct flow *flow, enum chunk_kind kind) {
    if (kind == CHUNK_CLOSE) flow->connection->doom = DOOM_CLOSE;
    if (kind == CHUNK_RESET) flow->connection->doom = DOOM_RESET;
    if (kind != CHUNK_END) return;
    if (flow->direction == TO_SERVER) link_deal(flow->connection->link, DEALING_HEARD);
    shutdown(receiver(flow), SHUT_WR);
    flow->end_written = true;
}

void flow_flush(struct flow *flow) {
    struct agenda *agenda = &flow->connection->proxy->agenda;
    int64_t now_ns = -1; /* not looked at yet */
    write_run(flow);
    while (flow->queue.first && flow->connection->connected && !flow->full && !flow->connection->doom) {
        struct chunk *chunk = flow->queue.first;
        if (!is_ready(chunk, &now_ns)) break;
        if (chunk->kind != CHUNK_BYTES) {
            end_here(flow, chunk->kind);
            chunk_remove_first(flow, &flow->queue);
        } else if (flow->deaf) {
            chunk_remove_first(flow, &flow->queue);
        } else {
            write_chunks(flow, &now_ns);
        }
    }
    const struct chunk *first = flow->queue.first;
    if (first && !first->holder && now_ns >= 0 && first->due_ns > now_ns)
        agenda_set(agenda, &flow->entry, first->due_ns);
    else agenda_remove(agenda, &flow->entry);
}

/* --- what goes in --- */

void flow_put(struct flow *flow, struct span bytes, struct rule *holder, int64_t due_ns) {
    write_run(flow);
    struct chunk *chunk = chunk_add(flow, &flow->queue, bytes);
    chunk->due_ns = due_ns;
    if (!holder) return;
    chunk->message_bytes = flow->opaque ? bytes.length : resp_told_bytes(&flow->scanner);
    chunk_hold(chunk, holder);
}

void flow_put_end(struct flow *flow, enum chunk_kind kind) {
    write_run(flow);
    chunk_add(flow, &flow->queue, (struct span){NULL, 0})->kind = kind;
}

void flow_pass(struct flow *flow, struct span bytes) {
    if (flow->run_length && flow->run + flow->run_length != bytes.bytes) write_run(flow);
    if (flow->run_length == 0) flow->run = bytes.bytes;
    flow->run_length += bytes.length;
}

void flow_put_aside(struct flow *flow, struct span bytes) {
    chunk_add(flow, &flow->aside, bytes);
}

void flow_join_aside(struct flow *flow) {
    write_run(flow);
    if (!flow->aside.first) return;
    if (flow->queue.last) flow->queue.last->next = flow->aside.first;
    else flow->queue.first = flow->aside.first;
    flow->queue.last = flow->aside.last;
    flow->queue.bytes += flow->aside.bytes;
    flow->aside = (struct queue){0};
    flow->aside_is_waiting = false;
}

/* --- reading --- */

void flow_end(struct flow *flow) {
    if (flow->black_hole) {
        flow->end_lost = true;
        return;
    }
    fate_take_rest(flow);
    flow_join_aside(flow);
    if (!flow->shut) flow_put_end(flow, CHUNK_END);
}

bool flow_wants_to_read(const struct flow *flow) {
    return !flow->source_ended && flow->connection->connected && flow->queue.bytes <= QUEUE_MAX;
}

void flow_read(struct flow *flow) {
    char *buffer = flow->connection->proxy->buffer;
    size_t before = flow->head_length;
    if (before) memcpy(buffer, flow->head, before);
    int source = flow->connection->io[flow->direction == TO_SERVER ? SIDE_CLIENT : SIDE_SERVER].fd;
    ssize_t got = recv(source, buffer + before, READ_SIZE, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got == READ_SIZE && flow->direction == TO_CLIENT) /* the server may have more than its socket took */
        link_deal(flow->connection->link, DEALING_HEARD);
    if (got <= 0) {
        flow->source_ended = true;
        flow_end(flow);
    } else if (flow->black_hole) {
        fate_lose(flow, (size_t)got);
    } else {
        fate_take(flow, (struct span){buffer, before + (size_t)got}, before);
    }
    flow_flush(flow);
}

/* --- beginning and end --- */

static void on_due(struct agenda_entry *entry) {
    struct flow *flow = (struct flow *)((char *)entry - offsetof(struct flow, entry));
    flow_flush(flow);
    connection_review(flow->connection);
}

void flow_open(struct flow *flow, struct connection *connection, enum direction direction, bool opaque) {
    *flow = (struct flow){.connection = connection, .direction = direction, .opaque = opaque};
    flow->entry.deliver = on_due;
    resp_start(&flow->scanner, direction == TO_SERVER ? RESP_REQUESTS : RESP_REPLIES);
}

void flow_close(struct flow *flow) {
    flow_discard(flow);
    flow->connection->proxy->memory_bytes -= flow->head_room;
    free(flow->head);
}
