#include "harness/recogniser/wire_event.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const KIND_NAMES[] = {
    [LOCK_ASKED] = "lock-asked",
    [LOCK_GRANTED] = "lock-granted",
    [LOCK_REFUSED] = "lock-refused",
    [LOCK_EXTENDED] = "lock-extended",
    [LOCK_EXTEND_REFUSED] = "lock-extend-refused",
    [LOCK_RELEASED] = "lock-released",
    [LOCK_RELEASE_REFUSED] = "lock-release-refused",
    [TRANSACTION_BEGUN] = "transaction-begun",
    [TRANSACTION_COMMITTED] = "transaction-committed",
    [TRANSACTION_ROLLED_BACK] = "transaction-rolled-back",
    [ACCESS_READ] = "access-read",
    [ACCESS_WRITE] = "access-write",
    [STATEMENT_NOT_RECOGNISED] = "not-recognised",
};
static_assert(sizeof KIND_NAMES / sizeof KIND_NAMES[0] == WIRE_EVENT_KINDS, "a name for each");

static const char *const LOCK_NAMES[] = {
    [LOCK_OF_NOTHING] = "",
    [LOCK_KEY] = "key",
    [LOCK_LIST_POP] = "list",
    [LOCK_ADVISORY] = "advisory",
    [LOCK_ADVISORY_TRANSACTION] = "advisory-transaction",
    [LOCK_ROW] = "row",
    [LOCK_LEASE_ROW] = "lease-row",
    [LOCK_OF_TABLE] = "table",
};

static const char *const REFUSAL_NAMES[] = {
    [NOT_REFUSED] = "",
    [REFUSED_HELD] = "held",
    [REFUSED_TIMEOUT] = "timeout",
    [REFUSED_DEADLOCK] = "deadlock",
    [REFUSED_NO_ROW] = "no-row",
    [REFUSED_NOT_HELD] = "not-held",
    [REFUSED_ERROR] = "error",
};

static const char *const ISOLATION_NAMES[] = {
    [ISOLATION_NOT_KNOWN] = "not-known",           [ISOLATION_READ_UNCOMMITTED] = "read-uncommitted",
    [ISOLATION_READ_COMMITTED] = "read-committed", [ISOLATION_REPEATABLE_READ] = "repeatable-read",
    [ISOLATION_SERIALIZABLE] = "serializable",
};

const char *wire_event_kind_name(enum wire_event_kind kind) {
    assert(kind < WIRE_EVENT_KINDS);
    return KIND_NAMES[kind];
}

struct event_line {
    char *text;
    size_t room, length;
};

static void event_line_byte(struct event_line *line, char byte) {
    if (line->length + 1 < line->room) line->text[line->length++] = byte;
}

__attribute__((format(printf, 2, 3))) static void event_line_add(struct event_line *line, const char *format, ...) {
    char piece[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    for (const char *each = piece; *each; each++) event_line_byte(line, *each);
}

static void event_line_text(struct event_line *line, const char *text) {
    static const char DIGITS[] = "0123456789abcdef";
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte >= ' ' && byte <= '~') {
            event_line_byte(line, (char)byte);
        } else {
            event_line_byte(line, '\\');
            event_line_byte(line, 'x');
            event_line_byte(line, DIGITS[byte >> 4]);
            event_line_byte(line, DIGITS[byte & 15]);
        }
    }
}

static void event_line_lock(struct event_line *line, const struct wire_event *event) {
    if (event->lock == LOCK_OF_NOTHING) return;
    event_line_add(line, " %s %s", LOCK_NAMES[event->lock], event->mode == WIRE_SHARED ? "shared" : "exclusive");
    if (*event->owner) {
        event_line_add(line, " owner=");
        event_line_text(line, event->owner);
    }
    if (event->lease_ms != 0) event_line_add(line, " lease=%lld", (long long)event->lease_ms);
    if (event->refusal != NOT_REFUSED) event_line_add(line, " refused=%s", REFUSAL_NAMES[event->refusal]);
}

const char *wire_event_print(const struct wire_event *event, char *text, size_t room) {
    struct event_line line = {text, room, 0};
    assert(room > 0);
    event_line_add(&line, "%lld %s", (long long)event->statement, wire_event_kind_name(event->kind));
    if (*event->object) {
        event_line_add(&line, " \"");
        event_line_text(&line, event->object);
        event_line_add(&line, "\"");
    }
    event_line_lock(&line, event);
    const struct {
        bool is_so;
        const char *name;
    } FLAGS[] = {{event->whole_table, "whole-table"}, {event->waits, "waits"},
                 {event->reenters, "reenters"},       {event->of_lock, "of-lock"},
                 {event->inserts, "inserts"},         {event->relative, "relative"},
                 {event->conditional, "conditional"}, {event->in_transaction, "in-transaction"}};
    for (size_t each = 0; each < sizeof FLAGS / sizeof FLAGS[0]; each++)
        if (FLAGS[each].is_so) event_line_add(&line, " %s", FLAGS[each].name);
    if (event->kind == TRANSACTION_BEGUN && event->isolation != ISOLATION_NOT_KNOWN)
        event_line_add(&line, " %s", ISOLATION_NAMES[event->isolation]);
    if (*event->reason) {
        event_line_add(&line, ": ");
        event_line_text(&line, event->reason);
    }
    text[line.length] = '\0';
    return text;
}
