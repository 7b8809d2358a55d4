/* Fuzzes the recogniser: sessions of any bytes end in events that are well formed, and in no crash; all memory is given
 * back. The first byte chooses the service; then each piece is a head (which session, which way, whether the session
 * ends), two bytes of length, and its bytes. */
#include <stdlib.h>
#include <string.h>

#include "harness/recogniser/recogniser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SESSIONS = 3, TABLES = 2 };

static const struct table_facts TABLE_FACTS[TABLES] = {{"users", {"id"}}, {"seats", {"row", "number"}}};

static const struct table_facts *table_facts(void *context, uint32_t oid, const char *name) {
    (void)context;
    for (uint32_t each = 0; each < TABLES; each++)
        if (oid ? oid == each + 1 : strcmp(TABLE_FACTS[each].name, name) == 0) return &TABLE_FACTS[each];
    return NULL;
}

static void event_check(void *context, const struct wire_event *event) {
    char line[512];
    (void)context;
    if (event->kind >= WIRE_EVENT_KINDS || event->session < 0 || event->session >= SESSIONS) abort();
    if (!event->object || !event->owner || !event->text || !event->reason) abort();
    if (event->lease_ms < -1 || event->answered_ns < event->asked_ns) abort();
    if (event->statement < 0) abort();
    bool is_lock = event->kind <= LOCK_RELEASE_REFUSED;
    bool is_named = is_lock || event->kind == ACCESS_READ || event->kind == ACCESS_WRITE;
    if (is_lock != (event->lock != LOCK_OF_NOTHING) || is_named != (*event->object != '\0')) abort();
    if (event->kind == STATEMENT_NOT_RECOGNISED && !*event->reason) abort();
    if (strlen(wire_event_print(event, line, sizeof line)) >= sizeof line) abort();
    if (strlen(event->object) > 255) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct lock_hint HINTS[] = {{.kind = HINT_KEY, .pattern = "l*k"},
                                             {.kind = HINT_LIST, .pattern = "mutex*"},
                                             {.kind = HINT_NO_KEY, .pattern = "once*"},
                                             {.kind = HINT_TABLE, .pattern = "job*"}};
    if (size < 1) return 0;
    const struct recogniser_settings settings = {.service = data[0] & 1 ? WIRE_POSTGRES : WIRE_REDIS,
                                                 .event = event_check,
                                                 .table = data[0] & 2 ? table_facts : NULL,
                                                 .hints = HINTS,
                                                 .hint_count = data[0] & 4 ? 4 : 0,
                                                 .database = data[0] & 8 ? "shop" : NULL};
    struct recogniser *recogniser = recogniser_open(&settings);
    struct wire_session *sessions[SESSIONS] = {NULL};
    int64_t now_ns = 1;
    for (size_t at = 1; at + 3 <= size; now_ns++) {
        uint8_t head = data[at];
        size_t length = (size_t)data[at + 1] << 8 | data[at + 2], number = head % SESSIONS;
        at += 3;
        if (length > size - at) length = size - at;
        if (!sessions[number]) sessions[number] = wire_session_open(recogniser, (int64_t)number);
        struct span bytes = {(const char *)data + at, length};
        if (head & 64) wire_session_answer(sessions[number], bytes, now_ns);
        else wire_session_request(sessions[number], bytes, now_ns);
        if (head >= 240) {
            wire_session_close(sessions[number], now_ns);
            sessions[number] = NULL;
        }
        at += length;
    }
    for (int number = 0; number < SESSIONS; number++)
        if (sessions[number]) wire_session_close(sessions[number], now_ns);
    recogniser_close(recogniser);
    return 0;
}
