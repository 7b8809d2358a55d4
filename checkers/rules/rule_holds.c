#include "checkers/rules/rule_holds.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000 };

bool same_object(const struct wire_event *one, const struct wire_event *other) {
    return one->service == other->service && strcmp(one->object, other->object) == 0;
}

static struct rule_hold *hold_add(struct rule_pass *pass) {
    if (pass->count == pass->room) {
        pass->room = pass->room ? 2 * pass->room : 32;
        pass->holds = realloc(pass->holds, pass->room * sizeof *pass->holds);
        if (!pass->holds) abort();
    }
    return &pass->holds[pass->count++];
}

static int64_t lease_ends_ns(const struct wire_event *event) {
    return event->lease_ms > 0 ? event->answered_ns + event->lease_ms * NS_PER_MS : INT64_MAX;
}

/* The hold of a lock that an event extends or releases: that of its owner, or of its session where it names none, or
 * the one that there is: who releases by the name alone releases whatever is held. */
static struct rule_hold *hold_of(struct rule_pass *pass, const struct wire_event *event, size_t at) {
    struct rule_hold *any = NULL;
    for (size_t each = pass->count; each-- > 0;) {
        struct rule_hold *hold = &pass->holds[each];
        if (!hold_lasts(hold, at) || strcmp(hold->object, event->object) != 0) continue;
        bool same = event->owner[0] ? strcmp(hold->owner, event->owner) == 0 : hold->session == event->session;
        if (same) return hold;
        if (!any) any = hold;
    }
    return event->owner[0] ? NULL : any;
}

static void granted_note(struct rule_pass *pass, size_t at) {
    const struct rule_event *event = &pass->record->events[at];
    *hold_add(pass) = (struct rule_hold){.object = event->wire.object,
                                         .owner = event->wire.owner,
                                         .lock = event->wire.lock,
                                         .request = event->request,
                                         .instance = event->instance,
                                         .session = event->wire.session,
                                         .granted = at,
                                         .released = SIZE_MAX,
                                         .ends_ns = lease_ends_ns(&event->wire)};
}

static void event_note(struct rule_pass *pass, size_t at) {
    const struct wire_event *event = &pass->record->events[at].wire;
    struct rule_hold *hold;
    switch (event->kind) {
    case LOCK_GRANTED:
        if (!event->reenters) granted_note(pass, at);
        return;
    case LOCK_EXTENDED:
        if ((hold = hold_of(pass, event, at)) != NULL) hold->ends_ns = lease_ends_ns(event);
        return;
    case LOCK_RELEASED:
        if (event->reenters || (hold = hold_of(pass, event, at)) == NULL) return;
        hold->released = at;
        hold->by_statement = !ends_with_transaction(hold->lock);
        return;
    default: return;
    }
}

void rule_holds_find(struct rule_pass *pass) {
    for (size_t at = 0; at < pass->record->count; at++) event_note(pass, at);
}

void rule_holds_free(struct rule_pass *pass) {
    free(pass->holds);
    pass->holds = NULL;
    pass->count = pass->room = 0;
}

bool row_is_locked(const struct rule_pass *pass, int request, const struct wire_event *access, size_t since,
                   size_t event) {
    for (size_t each = 0; each < pass->count; each++) {
        const struct rule_hold *hold = &pass->holds[each];
        bool covers =
            access->inserts || strcmp(hold->object, access->object) == 0 || hold->lock == LOCK_ADVISORY_TRANSACTION;
        if (hold->request == request && ends_with_transaction(hold->lock) && covers && hold->granted <= since &&
            hold_lasts(hold, event))
            return true;
    }
    return false;
}

size_t read_before(const struct rule_pass *pass, size_t event) {
    const struct rule_event *write = &pass->record->events[event];
    for (size_t at = event; at-- > 0;) {
        const struct rule_event *each = &pass->record->events[at];
        if (each->request == write->request && each->wire.kind == ACCESS_READ && !each->wire.of_lock &&
            same_object(&each->wire, &write->wire))
            return at;
    }
    return SIZE_MAX;
}

size_t commit_of(const struct rule_pass *pass, size_t event) {
    const struct wire_event *of = &pass->record->events[event].wire;
    for (size_t at = event + 1; at < pass->record->count && of->in_transaction; at++) {
        const struct wire_event *each = &pass->record->events[at].wire;
        if (each->service != of->service || each->session != of->session || each->transaction != of->transaction)
            continue;
        if (each->kind == TRANSACTION_COMMITTED) return at;
        if (each->kind == TRANSACTION_ROLLED_BACK) return SIZE_MAX;
    }
    return SIZE_MAX;
}

const char *request_write_name(const struct rule_pass *pass, int request, char text[96]) {
    const struct rule_request *of = &pass->record->requests[request];
    snprintf(text, 96, "request %d (%.40s) on instance %d", request + 1, of->name, of->instance + 1);
    return text;
}

static bool same_name(const struct rule_record *record, size_t one, size_t other) {
    int first = record->events[one].request, second = record->events[other].request;
    if (first < 0 || second < 0) return first == second;
    return strcmp(record->requests[first].name, record->requests[second].name) == 0;
}

/* One finding of a rule for each pair of request names: others say the same. */
static bool is_known(const struct rule_pass *pass, enum application_rule rule, size_t event, size_t other) {
    const struct rule_record *record = pass->record;
    for (int each = 0; each < pass->findings->count; each++) {
        const struct rule_finding *known = &pass->findings->of[each];
        bool same = same_name(record, known->event, event) && same_name(record, known->other, other);
        bool swapped = same_name(record, known->event, other) && same_name(record, known->other, event);
        if (known->rule == rule && (same || swapped)) return true;
    }
    return false;
}

void rule_broken(struct rule_pass *pass, enum application_rule rule, size_t event, size_t other, const char *format,
                 ...) {
    va_list arguments;
    struct rule_findings *findings = pass->findings;
    if (findings->count == RULE_FINDINGS || is_known(pass, rule, event, other)) return;
    struct rule_finding *added = &findings->of[findings->count++];
    *added = (struct rule_finding){.rule = rule, .event = event, .other = other};
    va_start(arguments, format);
    vsnprintf(added->sentence, sizeof added->sentence, format, arguments);
    va_end(arguments);
}
