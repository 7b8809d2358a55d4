/* Who holds which lock when, as far as a record shows; and what rules ask of it. */
#pragma once

#include "checkers/rules/rule_finding.h"

/* From the event `granted` to before the event `released`. */
struct rule_hold {
    const char *object, *owner;
    enum wire_lock_kind lock;
    int request, instance;
    int64_t session;
    size_t granted, released; /* SIZE_MAX: it was not */
    int64_t ends_ns;          /* of its lease, as it was set last; INT64_MAX: it has no end that is known */
    bool by_statement;        /* it was released, and not by the end of a transaction or session */
};

struct rule_pass {
    const struct rule_record *record;
    struct rule_hold *holds; /* owned */
    size_t count, room;
    struct rule_findings *findings;
};

void rule_holds_find(struct rule_pass *pass);
void rule_holds_free(struct rule_pass *pass);

/* Whether the hold lasts at the event: it was granted before, and is not released before. */
static inline bool hold_lasts(const struct rule_hold *hold, size_t event) {
    return hold->granted <= event && event < hold->released;
}

/* Whether a lock keeps others out until its transaction ends, and no longer. */
static inline bool ends_with_transaction(enum wire_lock_kind lock) {
    return lock == LOCK_ROW || lock == LOCK_ADVISORY_TRANSACTION || lock == LOCK_OF_TABLE;
}

/* Whether an event reads or writes data, and not a lock. */
static inline bool is_data(const struct wire_event *event) {
    return (event->kind == ACCESS_READ || event->kind == ACCESS_WRITE) && !event->of_lock;
}

/* A write that is right whatever was read before: it is computed from what is there, or takes place only if that is as
 * expected; or it makes a new row. */
static inline bool is_guarded(const struct wire_event *event) {
    return event->relative || event->conditional || event->inserts;
}

bool same_object(const struct wire_event *one, const struct wire_event *other);
/* Whether the request has the row of this access locked at the event, by a lock that it had been granted before the
 * event `since`. */
bool row_is_locked(const struct rule_pass *pass, int request, const struct wire_event *access, size_t since,
                   size_t event);
/* The last event before this one in which the request has read this data; SIZE_MAX: it has read none of it. */
size_t read_before(const struct rule_pass *pass, size_t event);
/* The commit of the transaction that an event is in; SIZE_MAX: it has none, or was rolled back. */
size_t commit_of(const struct rule_pass *pass, size_t event);
/* "request 2 (consume) on instance 1". Returns the buffer. */
const char *request_write_name(const struct rule_pass *pass, int request, char text[96]);

__attribute__((format(printf, 5, 6))) void rule_broken(struct rule_pass *pass, enum application_rule rule, size_t event,
                                                       size_t other, const char *format, ...);
