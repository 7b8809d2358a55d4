#include <stdio.h>
#include <string.h>

#include "harness/recogniser/postgres_talk.h"

/* What one statement does, as events: its locks, then its accesses, then what it does to the transaction. */

struct wire_event postgres_event(struct postgres_talk *talk, enum wire_event_kind kind, struct wire_moment moment,
                                 const struct transaction_state *transaction) {
    struct wire_event event = wire_event_begin(talk->session, kind, moment);
    event.transaction = transaction->number;
    event.in_transaction = transaction->is_explicit;
    event.isolation = transaction->isolation;
    return event;
}

/* A statement and its text, for the events of one request or one answer. */
struct statement_view {
    struct postgres_talk *talk;
    struct wire_moment moment;
    const struct bound_statement *bound;
    const struct sql_statement *sql;
    const struct transaction_state *transaction;
    struct lease_row lease;
    char text[STATEMENT_ROOM];
};

static void statement_view_begin(struct statement_view *view, struct postgres_talk *talk, struct wire_moment moment,
                                 const struct bound_statement *bound, const struct transaction_state *transaction) {
    *view = (struct statement_view){.talk = talk, .moment = moment, .bound = bound, .transaction = transaction};
    view->sql = bound->prepared->sql;
    view->lease = postgres_lease_read(talk, bound);
    struct short_text text = short_text_in(view->text, sizeof view->text);
    sql_statement_print(&text, view->sql, (struct sql_parameters){bound->parameters, bound->parameter_count});
    if (text.cut) memcpy(text.bytes + text.length - 3, "...", 3);
}

static struct wire_event view_event(const struct statement_view *view, enum wire_event_kind kind) {
    struct wire_event event = postgres_event(view->talk, kind, view->moment, view->transaction);
    event.text = view->text;
    return event;
}

static void view_not_recognised(const struct statement_view *view, const char *reason) {
    struct wire_event event = view_event(view, STATEMENT_NOT_RECOGNISED);
    event.reason = reason;
    wire_event_hand(view->talk->session, &event);
}

/* --- which lock --- */

/* "postgres advisory 42", "postgres advisory 1,2" */
static bool advisory_object(const struct statement_view *view, const struct advisory_call *call,
                            char object[static OBJECT_ROOM]) {
    struct row_name name;
    row_name_begin(view->talk, &name, "advisory ");
    for (int key = 0; key < call->key_count; key++) {
        if (key > 0) short_text_say(&name.text, ",");
        const struct sql_parameters parameters = {view->bound->parameters, view->bound->parameter_count};
        if (!sql_value_add(&name.text, view->sql, call->keys[key], parameters)) return false;
    }
    row_name_copy(&name, object);
    return call->key_count > 0 && !name.text.cut;
}

static struct wire_event advisory_event(const struct statement_view *view, enum wire_event_kind kind,
                                        const struct advisory_call *call, const char *object) {
    struct wire_event event = view_event(view, kind);
    event.lock = call->in_transaction ? LOCK_ADVISORY_TRANSACTION : LOCK_ADVISORY;
    event.mode = call->is_shared ? WIRE_SHARED : WIRE_EXCLUSIVE;
    event.object = object;
    return event;
}

static struct wire_event table_lock_event(const struct statement_view *view, enum wire_event_kind kind, int table,
                                          const char *object) {
    struct wire_event event = view_event(view, kind);
    event.lock = view->sql->verb == DOES_LOCK_TABLE ? LOCK_OF_TABLE : LOCK_ROW;
    event.mode = view->sql->tables[table].is_shared ? WIRE_SHARED : WIRE_EXCLUSIVE;
    event.object = object;
    return event;
}

static struct wire_event lease_event(const struct statement_view *view, enum wire_event_kind kind) {
    struct wire_event event = view_event(view, kind);
    event.lock = LOCK_LEASE_ROW;
    event.object = view->lease.object;
    event.owner = view->lease.owner;
    bool has_lease = kind == LOCK_ASKED || kind == LOCK_GRANTED || kind == LOCK_EXTENDED;
    if (has_lease) event.lease_ms = view->lease.lease_ms;
    return event;
}

/* --- asks, and how they end --- */

/* Calls for each row that the conditions name, else once for the table. */
static void each_named_lock(const struct statement_view *view, int table, const struct named_rows *rows,
                            void (*hand)(const struct statement_view *view, struct wire_event *event),
                            enum wire_event_kind kind) {
    char object[OBJECT_ROOM];
    for (int row = 0; row < rows->count; row++) {
        struct wire_event event = table_lock_event(view, kind, table, rows->names[row]);
        hand(view, &event);
    }
    if (rows->count > 0 && !rows->more) return;
    postgres_table_object(view->talk, view->sql->tables[table].name, object);
    struct wire_event event = table_lock_event(view, kind, table, object);
    event.whole_table = event.lock == LOCK_ROW;
    hand(view, &event);
}

static void hand_ask(const struct statement_view *view, struct wire_event *event) {
    event->waits = !view->sql->nowait && !view->sql->skips_locked;
    wire_event_hand(view->talk->session, event);
}

static void hand_grant(const struct statement_view *view, struct wire_event *event) {
    event->reenters = held_lock_add(view->talk, view->moment, event);
    wire_event_hand(view->talk->session, event);
}

/* Why the asks of a statement are refused. */
struct refusal_reason {
    enum wire_refusal refusal;
    const char *reason;
};

static struct refusal_reason refusal_of(const struct statement_view *view, const char *state) {
    bool waits = !view->sql->nowait;
    if (strncmp(state, "55P03", 5) == 0) return (struct refusal_reason){waits ? REFUSED_TIMEOUT : REFUSED_HELD, state};
    if (strncmp(state, "57014", 5) == 0) return (struct refusal_reason){REFUSED_TIMEOUT, state};
    if (strncmp(state, "40P01", 5) == 0) return (struct refusal_reason){REFUSED_DEADLOCK, state};
    if (strncmp(state, "23505", 5) == 0) return (struct refusal_reason){REFUSED_HELD, state};
    return (struct refusal_reason){REFUSED_ERROR, state};
}

/* Everything that the statement asks for, as events of this kind: LOCK_ASKED, or LOCK_REFUSED. */
static void asks_hand(const struct statement_view *view, enum wire_event_kind kind, struct refusal_reason why) {
    char object[OBJECT_ROOM];
    for (int each = 0; each < view->sql->advisory_count; each++) {
        const struct advisory_call *call = &view->sql->advisory_calls[each];
        if (call->kind != ADVISORY_LOCK || !advisory_object(view, call, object)) continue;
        struct wire_event event = advisory_event(view, kind, call, object);
        event.waits = kind == LOCK_ASKED && !call->tries;
        event.refusal = why.refusal;
        event.reason = why.reason;
        wire_event_hand(view->talk->session, &event);
    }
    if (view->lease.action == LEASE_TAKEN) {
        struct wire_event event = lease_event(view, kind);
        event.refusal = why.refusal;
        event.reason = why.reason;
        wire_event_hand(view->talk->session, &event);
    }
}

static void hand_row_refusal(const struct statement_view *view, struct wire_event *event) {
    event->refusal = REFUSED_NO_ROW;
    event->reason = view->sql->skips_locked ? "no row, or it was skipped" : "no row";
    wire_event_hand(view->talk->session, event);
}

static void hand_error_refusal(const struct statement_view *view, struct wire_event *event) {
    const struct refusal_reason why = refusal_of(view, view->talk->refused);
    event->refusal = why.refusal;
    event->reason = why.reason;
    wire_event_hand(view->talk->session, event);
}

/* The locks of rows and tables that the statement asks for, by what its conditions say. */
static void row_asks_hand(const struct statement_view *view, enum wire_event_kind kind,
                          void (*hand)(const struct statement_view *view, struct wire_event *event)) {
    for (int table = 0; table < view->sql->table_count; table++) {
        struct named_rows rows = {0};
        if (!view->sql->tables[table].is_locked) continue;
        if (view->sql->verb != DOES_LOCK_TABLE) postgres_rows_named(view->talk, view->bound, table, &rows);
        each_named_lock(view, table, &rows, hand, kind);
        named_rows_clear(&rows);
    }
}

void postgres_statement_asked(struct postgres_talk *talk, struct wire_moment moment,
                              const struct bound_statement *bound) {
    struct statement_view view;
    if (!bound || !bound->prepared || !bound->prepared->sql) return; /* its answer says so */
    transaction_asked(talk, bound->prepared->sql);
    statement_view_begin(&view, talk, moment, bound, &talk->asked);
    asks_hand(&view, LOCK_ASKED, (struct refusal_reason){NOT_REFUSED, ""});
    row_asks_hand(&view, LOCK_ASKED, hand_ask);
}

/* --- rows --- */

void postgres_statement_row(struct postgres_talk *talk, const struct bound_statement *bound,
                            const struct row_shape *shape, const struct span *columns, int count) {
    const struct sql_statement *sql = bound->prepared->sql;
    talk->row_count++;
    if (!sql) return;
    for (int each = 0; each < sql->advisory_count && talk->row_count == 1; each++) {
        const struct advisory_call *call = &sql->advisory_calls[each];
        if (call->is_condition) talk->answers[each] = 't';
        if (call->is_condition || call->is_hidden || call->column >= count) continue;
        struct span value = columns[call->column];
        bool is_true = value.length > 0 && (value.bytes[0] == 't' || value.bytes[0] == 1);
        talk->answers[each] = is_true ? 't' : 'f';
    }
    for (int table = 0; table < sql->table_count && shape->is_known; table++)
        postgres_row_note(talk, bound, shape, table, columns, count);
}

/* --- what was done --- */

static void unlock_done(const struct statement_view *view, const struct advisory_call *call, const char *object,
                        char answer) {
    struct wire_event event = advisory_event(view, LOCK_RELEASED, call, object);
    if (answer != 't') {
        event.kind = LOCK_RELEASE_REFUSED;
        event.refusal = REFUSED_NOT_HELD;
    } else {
        event.reenters = held_lock_remove(view->talk, &event) > 0;
    }
    wire_event_hand(view->talk->session, &event);
}

static void advisory_done(const struct statement_view *view, int each) {
    const struct advisory_call *call = &view->sql->advisory_calls[each];
    char object[OBJECT_ROOM];
    char answer = view->talk->answers[each];
    if (call->kind == ADVISORY_UNLOCK_ALL) {
        held_session_locks_end(view->talk, view->moment, "pg_advisory_unlock_all");
        return;
    }
    bool depends = call->kind == ADVISORY_UNLOCK || call->tries;
    bool is_named = advisory_object(view, call, object);
    if (!is_named && !view->sql->not_read) view_not_recognised(view, "the number of its advisory lock is not known");
    if (is_named && depends && call->is_hidden)
        view_not_recognised(view, "the result of its advisory lock is in no column of its answer");
    if (!is_named || (depends && call->is_hidden)) return;
    if (call->kind == ADVISORY_UNLOCK) {
        unlock_done(view, call, object, answer);
        return;
    }
    bool granted = call->tries ? answer == 't' : view->talk->row_count > 0 || call->is_hidden;
    struct wire_event event = advisory_event(view, granted ? LOCK_GRANTED : LOCK_REFUSED, call, object);
    event.refusal = granted ? NOT_REFUSED : REFUSED_HELD;
    if (granted) hand_grant(view, &event);
    else wire_event_hand(view->talk->session, &event);
}

static void lease_done(const struct statement_view *view, int64_t affected) {
    static const enum wire_event_kind KINDS[][2] = {[LEASE_TAKEN] = {LOCK_REFUSED, LOCK_GRANTED},
                                                    [LEASE_EXTENDED] = {LOCK_EXTEND_REFUSED, LOCK_EXTENDED},
                                                    [LEASE_GIVEN_BACK] = {LOCK_RELEASE_REFUSED, LOCK_RELEASED}};
    enum lease_action action = view->lease.action;
    if (action == LEASE_NOT_CLEAR)
        view_not_recognised(view, "it sets a row that may be a lock: name the table in [locks]");
    if (action == NO_LEASE || action == LEASE_NOT_CLEAR) return;
    struct wire_event event = lease_event(view, KINDS[action][affected > 0]);
    if (affected == 0) event.refusal = action == LEASE_TAKEN ? REFUSED_HELD : REFUSED_NOT_HELD;
    wire_event_hand(view->talk->session, &event);
}

/* The rows of the answer: of this table, or of the same one where the statement names it a second time. */
static const struct named_rows *returned_rows(const struct statement_view *view, int table) {
    const struct sql_statement *sql = view->sql;
    for (int each = 0; each < sql->table_count && view->talk->rows[table].count == 0; each++)
        if (strcmp(sql->tables[each].name, sql->tables[table].name) == 0 && view->talk->rows[each].count > 0)
            return &view->talk->rows[each];
    return &view->talk->rows[table];
}

static void row_locks_done(const struct statement_view *view, int64_t affected) {
    if (view->sql->verb == DOES_LOCK_TABLE) {
        row_asks_hand(view, LOCK_GRANTED, hand_grant);
        return;
    }
    bool any_returned = false;
    for (int table = 0; table < view->sql->table_count; table++) {
        const struct named_rows *returned = returned_rows(view, table);
        if (!view->sql->tables[table].is_locked || affected == 0 || returned->count == 0) continue;
        any_returned = true;
        each_named_lock(view, table, returned, hand_grant, LOCK_GRANTED);
    }
    if (affected == 0) row_asks_hand(view, LOCK_REFUSED, hand_row_refusal);
    else if (!any_returned) row_asks_hand(view, LOCK_GRANTED, hand_grant);
}

/* --- accesses --- */

static bool is_of_catalog(const char *table) {
    return strncmp(table, "pg_", 3) == 0 || strncmp(table, "information_schema.", 19) == 0;
}

static void access_hand(const struct statement_view *view, int table, bool writes, const char *object, bool whole) {
    const struct sql_statement *sql = view->sql;
    struct wire_event event = view_event(view, writes ? ACCESS_WRITE : ACCESS_READ);
    bool is_main = table == sql->main;
    event.object = object;
    event.whole_table = whole;
    event.of_lock =
        postgres_is_lease_table(view->talk, sql->tables[table].name) && (view->lease.action != NO_LEASE || !writes);
    event.inserts = writes && is_main && sql->verb == DOES_INSERT;
    event.relative = writes && is_main && sql->relative;
    event.conditional = writes && is_main && sql->conditional;
    wire_event_hand(view->talk->session, &event);
}

static void table_accessed(const struct statement_view *view, int table, int64_t affected) {
    struct postgres_talk *talk = view->talk;
    const struct sql_table *named = &view->sql->tables[table];
    struct named_rows rows = {0};
    char object[OBJECT_ROOM];
    if (is_of_catalog(named->name)) return;
    bool counts = view->sql->verb != DOES_SELECT && view->sql->verb != DOES_TRUNCATE && view->sql->verb != DOES_COPY;
    bool writes = named->is_written && !(counts && affected == 0 && table == view->sql->main);
    bool by_text = postgres_rows_named(talk, view->bound, table, &rows);
    const struct named_rows *known = by_text ? &rows : returned_rows(view, table);
    bool is_lease = table == view->sql->main && view->lease.object[0];
    if (is_lease) access_hand(view, table, writes, view->lease.object, false);
    for (int row = 0; row < known->count && !is_lease; row++)
        access_hand(view, table, writes, known->names[row], false);
    if (!is_lease && (known->count == 0 || known->more)) {
        postgres_table_object(talk, named->name, object);
        access_hand(view, table, writes, object, true);
    }
    named_rows_clear(&rows);
}

static void view_done(struct statement_view *view, bool is_rollback, int64_t affected) {
    const struct sql_statement *sql = view->sql;
    if (transaction_done(view->talk, view->moment, sql, is_rollback)) return;
    if (sql->not_read) view_not_recognised(view, sql->not_read);
    if (sql->verb == DOES_DISCARD_ALL) {
        held_session_locks_end(view->talk, view->moment, "DISCARD ALL");
        view->talk->isolation = view->talk->session->recogniser->settings.isolation;
    }
    for (int each = 0; each < sql->advisory_count; each++) advisory_done(view, each);
    lease_done(view, affected);
    row_locks_done(view, sql->verb == DOES_SELECT ? view->talk->row_count : affected);
    if (sql->verb == DOES_LOCK_TABLE) return;
    for (int table = 0; table < sql->table_count; table++) table_accessed(view, table, affected);
}

static void statement_rows_clear(struct postgres_talk *talk) {
    for (int table = 0; table < SQL_TABLES; table++) named_rows_clear(&talk->rows[table]);
    talk->row_count = 0;
    memset(talk->answers, 0, sizeof talk->answers);
}

static bool is_of_transactions(enum sql_verb verb) {
    return verb >= DOES_BEGIN && verb <= DOES_SET_SESSION;
}

void postgres_statement_done(struct postgres_talk *talk, struct wire_moment moment, const struct bound_statement *bound,
                             bool is_rollback, int64_t affected) {
    struct statement_view view;
    talk->last = moment;
    if (!bound || !bound->prepared || !bound->prepared->sql) {
        transaction_enter(&talk->answered, talk->isolation);
        struct wire_event event = postgres_event(talk, STATEMENT_NOT_RECOGNISED, moment, &talk->answered);
        event.reason = bound && bound->prepared ? "its text is too long" : "its text was not seen when it was prepared";
        wire_event_hand(talk->session, &event);
    } else {
        if (!is_of_transactions(bound->prepared->sql->verb)) transaction_enter(&talk->answered, talk->isolation);
        statement_view_begin(&view, talk, moment, bound, &talk->answered);
        view_done(&view, is_rollback, affected);
    }
    statement_rows_clear(talk);
}

void postgres_statement_failed(struct postgres_talk *talk, struct wire_moment moment,
                               const struct bound_statement *bound) {
    struct statement_view view;
    talk->last = moment;
    statement_rows_clear(talk);
    if (!bound || !bound->prepared || !bound->prepared->sql) return;
    transaction_enter(&talk->answered, talk->isolation);
    statement_view_begin(&view, talk, moment, bound, &talk->answered);
    asks_hand(&view, LOCK_REFUSED, refusal_of(&view, talk->refused));
    row_asks_hand(&view, LOCK_REFUSED, hand_error_refusal);
}
