#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/recogniser/postgres_talk.h"
#include "harness/recogniser/text/time_text.h"

/* Rows that are locks: a row says who holds the lock, and until when. Known are the tables of ShedLock (shedlock: name,
 * lock_until, locked_at, locked_by), of Spring Integration (int_lock: lock_key, region, client_id, expired_after), and
 * tables like them: the name has "lock" or "lease" in it, a column is the end of the lease (until, expir, lease), and
 * the statement compares it or sets it. A hint names others. */

static bool has_part(const char *text, const char *const *parts) {
    for (; *parts; parts++)
        if (strcasestr(text, *parts)) return true;
    return false;
}

static bool is_expiry(const char *column) {
    static const char *const PARTS[] = {"until", "expir", "lease", NULL};
    return has_part(column, PARTS);
}

static bool is_owner(const char *column) {
    static const char *const PARTS[] = {"owner", "locked_by", "client", "holder", "token", "instance", NULL};
    return !is_expiry(column) && has_part(column, PARTS);
}

/* "lock" or "lease" begins a word of the name: user_locks, and not blocks. */
static bool is_called_lock(const char *table) {
    static const char *const WORDS[] = {"lock", "lease", NULL};
    for (const char *const *word = WORDS; *word; word++)
        for (const char *at = strcasestr(table, *word); at; at = strcasestr(at + 1, *word))
            if (at == table || !isalpha((unsigned char)at[-1])) return true;
    return strcasecmp(table, "shedlock") == 0;
}

bool postgres_is_lease_table(const struct postgres_talk *talk, const char *table) {
    static const char *const KNOWN[] = {"shedlock", "int_lock", NULL};
    for (const char *const *known = KNOWN; *known; known++)
        if (strcasecmp(table, *known) == 0) return true;
    const struct recogniser *recogniser = talk->session->recogniser;
    return text_table_find(&recogniser->lock_keys, text_span(table)) ||
           hint_find(recogniser, HINT_TABLE, text_span(table));
}

/* From now on, reads of the table concern locks. */
static void lease_table_note(const struct postgres_talk *talk, const char *table) {
    char *kept = strdup(table);
    if (!kept) abort();
    text_table_put(&talk->session->recogniser->lock_keys, text_span(table), kept);
}

static bool may_have_leases(const struct postgres_talk *talk, const char *table) {
    return is_called_lock(table) || hint_find(talk->session->recogniser, HINT_TABLE, text_span(table));
}

/* --- the values of its columns --- */

/* What a column is set to, inserted with, or compared with. */
static bool lease_value(const struct bound_statement *bound, const char *column, struct sql_value *value) {
    const struct sql_statement *sql = bound->prepared->sql;
    for (int place = 0; sql->verb == DOES_INSERT && sql->insert_row_count == 1; place++) {
        struct sql_value named;
        char name[SQL_NAME];
        struct short_text text = short_text_in(name, sizeof name);
        if (!sql_listed_value(sql, sql->insert_columns, place, &named)) break;
        sql_name_add(&text, &sql->tokens.list[named.from]);
        if (strcmp(name, column) == 0) return sql_listed_value(sql, sql->insert_rows[0], place, value);
    }
    for (int each = 0; each < sql->equality_count; each++) {
        if (sql->equalities[each].table != sql->main || strcmp(sql->equalities[each].column, column) != 0) continue;
        *value = sql->values[sql->equalities[each].first];
        return sql->equalities[each].count == 1 && !sql->equalities[each].is_array;
    }
    return false;
}

static bool lease_text(struct short_text *text, const struct bound_statement *bound, struct sql_value value) {
    const struct sql_parameters parameters = {bound->parameters, bound->parameter_count};
    return sql_value_add(text, bound->prepared->sql, value, parameters);
}

static bool lease_name_by(const struct postgres_talk *talk, const struct bound_statement *bound,
                          const char *const *keys, char object[static OBJECT_ROOM]) {
    const struct sql_statement *sql = bound->prepared->sql;
    struct row_name name;
    row_name_begin(talk, &name, sql->tables[sql->main].name);
    for (int key = 0; key < TABLE_KEYS && keys[key]; key++) {
        struct sql_value value;
        row_name_key(&name, keys[key]);
        if (!lease_value(bound, keys[key], &value) || !lease_text(&name.text, bound, value)) return false;
    }
    row_name_copy(&name, object);
    return !name.text.cut;
}

/* By the table's key if it is known, else by one of the usual columns. */
static bool lease_name(const struct postgres_talk *talk, const struct bound_statement *bound,
                       char object[static OBJECT_ROOM]) {
    static const char *const USUAL[][3] = {{"name"}, {"region", "lock_key"}, {"lock_name"}, {"lock_key"},
                                           {"key"},  {"resource"},           {"id"}};
    const struct recogniser_settings *settings = &talk->session->recogniser->settings;
    const char *table = bound->prepared->sql->tables[bound->prepared->sql->main].name;
    const struct table_facts *facts = settings->table ? settings->table(settings->context, 0, table) : NULL;
    if (facts && facts->keys[0]) return lease_name_by(talk, bound, facts->keys, object);
    for (size_t each = 0; each < sizeof USUAL / sizeof USUAL[0]; each++)
        if (lease_name_by(talk, bound, USUAL[each], object)) return true;
    return false;
}

/* The first column of this sort that is inserted or set. */
static bool column_that(const struct sql_statement *sql, bool (*is_of_sort)(const char *column),
                        struct sql_value *value) {
    struct sql_value named;
    char column[SQL_NAME];
    bool inserts = sql->verb == DOES_INSERT && sql->insert_row_count == 1 && sql->insert_columns >= 0;
    for (int place = 0; inserts && sql_listed_value(sql, sql->insert_columns, place, &named); place++) {
        struct short_text text = short_text_in(column, sizeof column);
        sql_name_add(&text, &sql->tokens.list[named.from]);
        if (is_of_sort(column) && sql_listed_value(sql, sql->insert_rows[0], place, value)) return true;
    }
    for (int each = 0; each < sql->assignment_count; each++) {
        if (!is_of_sort(sql->assignments[each].column)) continue;
        *value = sql->assignments[each].value;
        return true;
    }
    return false;
}

static bool compares_owner(const struct sql_statement *sql) {
    for (int each = 0; each < sql->equality_count; each++)
        if (sql->equalities[each].table == sql->main && is_owner(sql->equalities[each].column)) return true;
    return false;
}

/* --- what it does --- */

/* A lease that ends now, or that ends later. */
static bool is_extension(const struct sql_statement *sql, struct sql_value expiry) {
    for (int at = expiry.from; at < expiry.to; at++) {
        const struct sql_token *token = &sql->tokens.list[at];
        if (sql_token_is(token, "+") || sql_token_is_word(token, "interval")) return true;
    }
    return false;
}

static enum lease_action lease_action_of(const struct sql_statement *sql) {
    struct sql_value expiry = {0, 0};
    bool sets_expiry = column_that(sql, is_expiry, &expiry);
    if (sql->verb == DOES_INSERT) return sets_expiry ? LEASE_TAKEN : NO_LEASE;
    if (sql->verb == DOES_DELETE) return compares_owner(sql) ? LEASE_GIVEN_BACK : NO_LEASE;
    if (sql->verb != DOES_UPDATE || !sets_expiry) return NO_LEASE;
    if (sql->expiry_is_over.to > 0) return LEASE_TAKEN;
    if (sql->expiry_is_ahead.to > 0 || is_extension(sql, expiry)) return LEASE_EXTENDED;
    /* ShedLock's unlock: lock_until = now. */
    return compares_owner(sql) ? LEASE_GIVEN_BACK : LEASE_NOT_CLEAR;
}

static void owner_copy(const struct bound_statement *bound, char owner[static OWNER_ROOM]) {
    const struct sql_statement *sql = bound->prepared->sql;
    struct sql_value value = {0, 0};
    struct short_text text = short_text_in(owner, OWNER_ROOM);
    bool found = column_that(sql, is_owner, &value);
    for (int each = 0; each < sql->equality_count && !found; each++) {
        found = is_owner(sql->equalities[each].column);
        if (found) value = sql->values[sql->equalities[each].first];
    }
    if (found) lease_text(&text, bound, value);
}

/* --- how long --- */

static bool is_beginning(const char *column) {
    return strcasecmp(column, "locked_at") == 0 || strcasecmp(column, "acquired_at") == 0;
}

/* now() + an interval, or a timestamp with the one at which the lock was taken. */
static int64_t lease_length_ms(const struct bound_statement *bound) {
    const struct sql_statement *sql = bound->prepared->sql;
    struct sql_value expiry, beginning;
    char texts[2][64];
    struct short_text to = short_text_in(texts[0], 64), from = short_text_in(texts[1], 64);
    if (!column_that(sql, is_expiry, &expiry)) return -1;
    for (int at = expiry.to - 1; at > expiry.from; at--) {
        if (!sql_token_is(&sql->tokens.list[at], "+")) continue;
        bool is_text = lease_text(&to, bound, (struct sql_value){at + 1, expiry.to}) && !to.cut;
        return is_text ? interval_text_ms(text_span(texts[0])) : -1;
    }
    if (!column_that(sql, is_beginning, &beginning)) return -1;
    bool are_texts = lease_text(&to, bound, expiry) && lease_text(&from, bound, beginning) && !to.cut && !from.cut;
    return are_texts ? timestamp_texts_apart_ms(text_span(texts[1]), text_span(texts[0])) : -1;
}

struct lease_row postgres_lease_read(const struct postgres_talk *talk, const struct bound_statement *bound) {
    struct lease_row lease = {.action = NO_LEASE, .lease_ms = -1};
    const struct sql_statement *sql = bound->prepared->sql;
    if (sql->main < 0 || !sql->tables[sql->main].is_written) return lease;
    if (!may_have_leases(talk, sql->tables[sql->main].name)) return lease;
    lease.action = lease_action_of(sql);
    if (lease.action == NO_LEASE || lease.action == LEASE_NOT_CLEAR) return lease;
    lease.lease_ms = lease_length_ms(bound);
    if (!lease_name(talk, bound, lease.object)) {
        lease.action = LEASE_NOT_CLEAR;
        return lease;
    }
    owner_copy(bound, lease.owner);
    lease_table_note(talk, sql->tables[sql->main].name);
    return lease;
}
