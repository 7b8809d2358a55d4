#include "harness/recogniser/wire_session.h"

#include <assert.h>
#include <stdio.h>

struct wire_event wire_event_begin(const struct wire_session *session, enum wire_event_kind kind,
                                   struct wire_moment moment) {
    return (struct wire_event){.kind = kind,
                               .service = session->recogniser->settings.service,
                               .session = session->number,
                               .statement = moment.statement,
                               .asked_ns = moment.asked_ns,
                               .answered_ns = moment.answered_ns,
                               .object = "",
                               .owner = "",
                               .text = "",
                               .reason = ""};
}

void wire_event_hand(const struct wire_session *session, const struct wire_event *event) {
    const struct recogniser_settings *settings = &session->recogniser->settings;
    assert(event->object && event->owner && event->text && event->reason);
    settings->event(settings->context, event);
}

void wire_not_recognised(const struct wire_session *session, struct wire_moment moment, const char *text,
                         const char *reason) {
    struct wire_event event = wire_event_begin(session, STATEMENT_NOT_RECOGNISED, moment);
    event.text = text;
    event.reason = reason;
    wire_event_hand(session, &event);
}

void wire_session_deafen(struct wire_session *session, struct wire_moment moment, const char *reason) {
    if (session->deaf) return;
    session->deaf = true;
    wire_not_recognised(session, moment, "", reason);
}

void object_end(struct short_text *object, uint64_t whole) {
    char hash[2 + 16];
    if (!object->cut) return;
    snprintf(hash, sizeof hash, "#%016llx", (unsigned long long)whole);
    assert(object->room > sizeof hash && object->length == object->room - 1);
    memcpy(object->bytes + object->length - (sizeof hash - 1), hash, sizeof hash);
}

/* Each * is tried at its first place only from the last one on: no pattern takes longer than pattern times name. */
static bool pattern_fits(const char *pattern, struct span name) {
    size_t at = 0, star_at = 0;
    const char *star = NULL;
    while (at < name.length) {
        if (*pattern == '*') {
            star = pattern++;
            star_at = at;
        } else if (*pattern && *pattern == name.bytes[at]) {
            pattern++;
            at++;
        } else if (star) {
            pattern = star + 1;
            at = ++star_at;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

const struct lock_hint *hint_find(const struct recogniser *recogniser, enum lock_hint_kind kind, struct span name) {
    for (int each = 0; each < recogniser->settings.hint_count; each++) {
        const struct lock_hint *hint = &recogniser->settings.hints[each];
        if (hint->kind == kind && pattern_fits(hint->pattern, name)) return hint;
    }
    return NULL;
}
