#include <assert.h>
#include <stdlib.h>

#include "harness/recogniser/lua/lua_script.h"
#include "harness/recogniser/postgres_talk.h"
#include "harness/recogniser/redis_talk.h"

struct recogniser *recogniser_open(const struct recogniser_settings *settings) {
    struct recogniser *recogniser = calloc(1, sizeof *recogniser);
    if (!recogniser) abort();
    assert(settings->event);
    recogniser->settings = *settings;
    if (recogniser->settings.isolation == ISOLATION_NOT_KNOWN)
        recogniser->settings.isolation = ISOLATION_READ_COMMITTED;
    text_table_begin(&recogniser->scripts, SCRIPTS_MOST, lua_script_drop);
    text_table_begin(&recogniser->lock_keys, LOCK_KEYS_MOST, NULL);
    return recogniser;
}

void recogniser_close(struct recogniser *recogniser) {
    assert(recogniser->sessions == 0);
    text_table_clear(&recogniser->scripts);
    text_table_clear(&recogniser->lock_keys);
    free(recogniser);
}

void recogniser_script_add(struct recogniser *recogniser, struct span text) {
    char name[SHA1_HEX];
    script_remember(recogniser, text, name);
}

struct wire_session *wire_session_open(struct recogniser *recogniser, int64_t number) {
    struct wire_session *session = calloc(1, sizeof *session);
    if (!session) abort();
    session->recogniser = recogniser;
    session->number = number;
    recogniser->sessions++;
    if (recogniser->settings.service == WIRE_POSTGRES) session->postgres = postgres_talk_begin(session);
    else session->redis = redis_talk_begin(session);
    return session;
}

void wire_session_request(struct wire_session *session, struct span message, int64_t at_ns) {
    if (session->deaf) return;
    if (session->postgres) postgres_talk_request(session->postgres, message, at_ns);
    else redis_talk_request(session->redis, message, at_ns);
}

void wire_session_answer(struct wire_session *session, struct span message, int64_t at_ns) {
    if (session->deaf) return;
    if (session->postgres) postgres_talk_answer(session->postgres, message, at_ns);
    else redis_talk_answer(session->redis, message, at_ns);
}

void wire_session_close(struct wire_session *session, int64_t at_ns) {
    if (session->postgres) postgres_talk_end(session->postgres, at_ns);
    else redis_talk_end(session->redis, at_ns);
    session->recogniser->sessions--;
    free(session);
}

int64_t wire_session_statements(const struct wire_session *session) {
    return session->statements;
}
