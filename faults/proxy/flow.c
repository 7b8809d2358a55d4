#include "faults/proxy/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { WRITE_CHUNKS = 64 };

/* --- the queue --- */

static struct chunk *chunk_add(struct flow *flow, struct chunk_queue *queue, struct span bytes) {
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

static void chunk_remove_first(struct flow *flow, struct chunk_queue *queue) {
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
    timer_heap_remove(&flow->connection->proxy->timers, &flow->timer);
    return bytes;
}

/* --- writing --- */

static int receiver(const struct flow *flow) {
    return flow->connection->io[flow->direction == TO_SERVER ? SIDE_SERVER : SIDE_CLIENT].fd;
}

/* Returns how many bytes the receiver took. */
static size_t write_some(struct flow *flow, struct iovec *parts, size_t count) {
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    if (flow->direction == TO_SERVER) proxy_link_add_activity(flow->connection->link, TARGET_HAS_INPUT);
    ssize_t sent = count == 1 ? send(receiver(flow), parts->iov_base, parts->iov_len, MSG_NOSIGNAL)
                              : sendmsg(receiver(flow), &message, MSG_NOSIGNAL);
    if (sent >= 0) {
        flow->connection->link->bytes[flow->direction] += (uint64_t)sent;
        return (size_t)sent;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) flow->receiver_full = true;
    else if (errno != EINTR) flow->receiver_gone = true;
    return 0;
}

/* Writes the run; what the receiver does not take is queued. */
static void write_run(struct flow *flow) {
    struct span run = {flow->run, flow->run_length};
    flow->run_length = 0;
    while (run.length && !flow->queue.first && !flow->receiver_full && !flow->receiver_gone) {
        struct iovec part = {(void *)(uintptr_t)run.bytes, run.length};
        size_t sent = write_some(flow, &part, 1);
        run = (struct span){run.bytes + sent, run.length - sent};
    }
    if (run.length && !flow->receiver_gone) chunk_add(flow, &flow->queue, run);
}

static bool is_ready(const struct chunk *chunk, int64_t *now_ns) {
    if (chunk->holder) return false;
    if (chunk->due_ns == 0) return true;
    if (*now_ns < 0) *now_ns = proxy_now_ns(chunk->flow->connection->proxy);
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

static void write_end(struct flow *flow, enum chunk_kind kind) {
    if (kind == CHUNK_CLOSE) flow->connection->closing = CLOSING_CLOSE;
    if (kind == CHUNK_RESET) flow->connection->closing = CLOSING_RESET;
    if (kind != CHUNK_END) return;
    if (flow->direction == TO_SERVER) proxy_link_add_activity(flow->connection->link, TARGET_HAS_INPUT);
    shutdown(receiver(flow), SHUT_WR);
    flow->end_written = true;
}

void flow_flush(struct flow *flow) {
    struct timer_heap *timers = &flow->connection->proxy->timers;
    int64_t now_ns = -1; /* not read yet */
    write_run(flow);
    while (flow->queue.first && flow->connection->connected && !flow->receiver_full && !flow->connection->closing) {
        struct chunk *chunk = flow->queue.first;
        if (!is_ready(chunk, &now_ns)) break;
        if (chunk->kind != CHUNK_BYTES) {
            write_end(flow, chunk->kind);
            chunk_remove_first(flow, &flow->queue);
        } else if (flow->receiver_gone) {
            chunk_remove_first(flow, &flow->queue);
        } else {
            write_chunks(flow, &now_ns);
        }
    }
    const struct chunk *first = flow->queue.first;
    if (first && !first->holder && now_ns >= 0 && first->due_ns > now_ns)
        timer_heap_set(timers, &flow->timer, first->due_ns);
    else timer_heap_remove(timers, &flow->timer);
}

/* --- what goes in --- */

void flow_put(struct flow *flow, struct span bytes, struct rule *holder, int64_t due_ns) {
    write_run(flow);
    struct chunk *chunk = chunk_add(flow, &flow->queue, bytes);
    chunk->due_ns = due_ns;
    if (!holder) return;
    chunk->message_bytes = flow->opaque ? 0 : resp_announced_bytes(&flow->scanner);
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
    flow->aside = (struct chunk_queue){0};
    flow->aside_is_waiting = false;
}

/* --- the head of an undecided message --- */

void flow_keep_head(struct flow *flow, struct span head) {
    if (head.length > flow->head_capacity) {
        size_t capacity = flow->head_capacity ? flow->head_capacity : 256;
        while (capacity < head.length) capacity *= 2;
        flow->head = realloc(flow->head, capacity);
        if (!flow->head) abort();
        flow->connection->proxy->memory_bytes += capacity - flow->head_capacity;
        flow->head_capacity = capacity;
    }
    memcpy(flow->head + flow->head_length, head.bytes + flow->head_length, head.length - flow->head_length);
    flow->head_length = head.length;
}

void flow_drop_head(struct flow *flow) {
    if (!flow->head) return;
    flow->connection->proxy->memory_bytes -= flow->head_capacity;
    free(flow->head);
    flow->head = NULL;
    flow->head_length = flow->head_capacity = 0;
}

/* --- beginning and end --- */

bool flow_wants_to_read(const struct flow *flow) {
    return !flow->source_ended && flow->connection->connected && flow->queue.bytes <= FLOW_QUEUE_MAX;
}

void flow_open(struct flow *flow, struct proxy_connection *connection, enum direction direction, bool opaque,
               void (*on_due)(struct timer *timer)) {
    *flow = (struct flow){.connection = connection, .direction = direction, .opaque = opaque};
    flow->timer.deliver = on_due;
    resp_start(&flow->scanner, direction == TO_SERVER ? RESP_REQUESTS : RESP_REPLIES);
}

void flow_close(struct flow *flow) {
    flow_discard(flow);
    flow_drop_head(flow);
}
