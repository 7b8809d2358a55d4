#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/recogniser/postgres_talk.h"

/* Transactions and savepoints, and the locks that end with them. The server's word (the status of ReadyForQuery)
 * counts: where it says something else than the statements did, a transaction has begun or ended unseen. */

/* --- what a statement does to the state --- */

void transaction_enter(struct transaction_state *state, enum wire_isolation isolation) {
    if (state->is_open) return;
    state->is_open = true;
    state->number++;
    state->isolation = isolation;
}

static void transaction_leave(struct transaction_state *state) {
    state->is_explicit = state->is_open = false;
}

static void transaction_begin(struct transaction_state *state, enum wire_isolation isolation,
                              enum wire_isolation said) {
    transaction_enter(state, isolation);
    state->is_explicit = true;
    if (said != ISOLATION_NOT_KNOWN) state->isolation = said;
}

static void transaction_apply(struct postgres_talk *talk, struct transaction_state *state,
                              const struct sql_statement *sql) {
    enum wire_isolation isolation = state->isolation;
    switch (sql->verb) {
    case DOES_BEGIN: transaction_begin(state, talk->isolation, sql->isolation); break;
    case DOES_COMMIT:
    case DOES_ROLLBACK:
        transaction_leave(state);
        if (sql->chains) transaction_begin(state, isolation, ISOLATION_NOT_KNOWN);
        break;
    case DOES_SET_TRANSACTION:
        if (state->is_open && sql->isolation != ISOLATION_NOT_KNOWN) state->isolation = sql->isolation;
        break;
    default: transaction_enter(state, talk->isolation); break;
    }
}

void transaction_asked(struct postgres_talk *talk, const struct sql_statement *sql) {
    transaction_apply(talk, &talk->asked, sql);
}

/* --- locks that are held --- */

static size_t held_name(char *name, size_t room, const struct wire_event *event) {
    int length = snprintf(name, room, "%d %d %s", (int)event->lock, (int)event->mode, event->object);
    return (size_t)length < room ? (size_t)length : room - 1;
}

static struct text_table *locks_of(struct postgres_talk *talk, enum wire_lock_kind kind) {
    return kind == LOCK_ADVISORY ? &talk->session_locks : &talk->transaction_locks;
}

bool held_lock_add(struct postgres_talk *talk, struct wire_moment moment, const struct wire_event *event) {
    char name[OBJECT_ROOM + 16];
    struct text_table *locks = locks_of(talk, event->lock);
    struct span span = {name, held_name(name, sizeof name, event)};
    struct held_lock *held = text_table_find(locks, span);
    if (held) {
        held->count++;
        return true;
    }
    if (locks->count == locks->most) {
        wire_not_recognised(talk->session, moment, "",
                            "more locks are held than are remembered: their end is not seen");
        return false;
    }
    size_t length = strlen(event->object) + 1;
    held = malloc(sizeof *held + length);
    if (!held) abort();
    *held = (struct held_lock){event->lock, event->mode, event->whole_table, 1, talk->savepoint_count};
    memcpy(held->object, event->object, length);
    text_table_put(locks, span, held);
    return false;
}

int held_lock_remove(struct postgres_talk *talk, const struct wire_event *event) {
    char name[OBJECT_ROOM + 16];
    struct text_table *locks = locks_of(talk, event->lock);
    struct span span = {name, held_name(name, sizeof name, event)};
    struct held_lock *held = text_table_find(locks, span);
    if (!held) return -1;
    int left = --held->count;
    if (left == 0) text_table_remove(locks, span);
    return left;
}

static void held_lock_hand(struct postgres_talk *talk, struct wire_moment moment, const struct held_lock *held,
                           const char *reason) {
    struct wire_event event = postgres_event(talk, LOCK_RELEASED, moment, &talk->answered);
    event.lock = held->kind;
    event.mode = held->mode;
    event.object = held->object;
    event.whole_table = held->whole_table;
    event.reason = reason;
    wire_event_hand(talk->session, &event);
}

static void held_locks_end(struct postgres_talk *talk, struct text_table *locks, struct wire_moment moment,
                           const char *reason) {
    for (const struct text_entry *entry = locks->oldest; entry; entry = entry->newer)
        held_lock_hand(talk, moment, entry->value, reason);
    text_table_clear(locks);
}

void held_session_locks_end(struct postgres_talk *talk, struct wire_moment moment, const char *reason) {
    held_locks_end(talk, &talk->session_locks, moment, reason);
}

/* The newest locks, which were granted after so many savepoints. */
static void newest_locks_end(struct postgres_talk *talk, struct wire_moment moment, int savepoints) {
    struct text_table *locks = &talk->transaction_locks;
    for (struct text_entry *entry = locks->newest, *older; entry; entry = older) {
        const struct held_lock *held = entry->value;
        older = entry->older;
        if (held->savepoints <= savepoints) return;
        held_lock_hand(talk, moment, held, "rolled back to a savepoint");
        text_table_remove(locks, (struct span){entry->name, entry->length});
    }
}

static void newest_locks_join(struct postgres_talk *talk, int savepoints) {
    for (struct text_entry *entry = talk->transaction_locks.newest; entry; entry = entry->older) {
        struct held_lock *held = entry->value;
        if (held->savepoints <= savepoints) return;
        held->savepoints = savepoints;
    }
}

/* --- savepoints --- */

static int savepoint_find(const struct postgres_talk *talk, const char *name) {
    int each = talk->savepoint_count - 1;
    while (each >= 0 && strcmp(talk->savepoints[each], name) != 0) each--;
    return each;
}

static void savepoint_done(struct postgres_talk *talk, struct wire_moment moment, const struct sql_statement *sql) {
    if (sql->verb == DOES_SAVEPOINT) {
        if (talk->savepoint_count == SAVEPOINTS_MOST) {
            wire_not_recognised(talk->session, moment, "", "more savepoints than are remembered");
            return;
        }
        memcpy(talk->savepoints[talk->savepoint_count++], sql->savepoint, SQL_NAME);
        return;
    }
    int at = savepoint_find(talk, sql->savepoint);
    if (at < 0) return;
    if (sql->verb == DOES_ROLLBACK_TO) {
        newest_locks_end(talk, moment, at);
        talk->savepoint_count = at + 1;
    } else {
        newest_locks_join(talk, at);
        talk->savepoint_count = at;
    }
}

/* --- the end --- */

static void transaction_hand(struct postgres_talk *talk, enum wire_event_kind kind, struct wire_moment moment,
                             const char *reason) {
    struct wire_event event = postgres_event(talk, kind, moment, &talk->answered);
    event.reason = reason;
    wire_event_hand(talk->session, &event);
}

/* Its event, if it has one, and its locks. */
static void transaction_end(struct postgres_talk *talk, struct wire_moment moment, bool commits, const char *reason) {
    if (talk->answered.is_explicit)
        transaction_hand(talk, commits ? TRANSACTION_COMMITTED : TRANSACTION_ROLLED_BACK, moment, reason);
    held_locks_end(talk, &talk->transaction_locks, moment, "the transaction ended");
    talk->savepoint_count = 0;
    transaction_leave(&talk->answered);
}

bool transaction_done(struct postgres_talk *talk, struct wire_moment moment, const struct sql_statement *sql,
                      bool is_rollback) {
    bool was_explicit = talk->answered.is_explicit;
    switch (sql->verb) {
    case DOES_COMMIT:
    case DOES_ROLLBACK: {
        bool commits = sql->verb == DOES_COMMIT && !is_rollback;
        const char *reason = sql->verb == DOES_COMMIT && is_rollback ? "a statement of it had failed" : "";
        transaction_end(talk, moment, commits, reason);
        break;
    }
    case DOES_BEGIN:
    case DOES_SET_TRANSACTION: break;
    case DOES_SET_SESSION:
        if (sql->isolation != ISOLATION_NOT_KNOWN) talk->isolation = sql->isolation;
        return true;
    case DOES_SAVEPOINT:
    case DOES_ROLLBACK_TO:
    case DOES_RELEASE_SAVEPOINT: savepoint_done(talk, moment, sql); return true;
    default: return false;
    }
    transaction_apply(talk, &talk->answered, sql);
    bool begins = talk->answered.is_explicit && (!was_explicit || sql->verb != DOES_BEGIN);
    if (begins && sql->verb != DOES_SET_TRANSACTION) transaction_hand(talk, TRANSACTION_BEGUN, moment, "");
    return true;
}

void transaction_ready(struct postgres_talk *talk, int64_t at_ns, char status) {
    struct wire_moment moment = talk->last;
    moment.answered_ns = at_ns;
    if (status == 'I') {
        transaction_end(talk, moment, false, *talk->refused ? talk->refused : "the server says that it has ended");
    } else if (!talk->answered.is_explicit) {
        transaction_begin(&talk->answered, talk->isolation, ISOLATION_NOT_KNOWN);
        transaction_hand(talk, TRANSACTION_BEGUN, moment, "its beginning was not seen");
    }
    talk->refused[0] = '\0';
}

void transaction_end_session(struct postgres_talk *talk, int64_t at_ns) {
    struct wire_moment moment = {talk->last.statement, at_ns, at_ns};
    transaction_end(talk, moment, false, "the connection ended");
    held_session_locks_end(talk, moment, "the connection ended");
}
