#include "harness/locks/adapter/adapter_talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 160 };
static const char ADAPTER_ERROR[] = "the adapter answered unknown: "; /* as trial_clients.py knows it */

static const struct {
    const char *word;
    enum outcome outcome;
} OUTCOMES[] = {{"ok", OUTCOME_OK}, {"refused", OUTCOME_REFUSED}, {"unknown", OUTCOME_UNKNOWN}};

static const char *const ANSWER_KEYS[] = {"id", "outcome", "error", "token", "valid_until_ms", "held", NULL};

_Noreturn void adapter_give_up(struct lock *lock, const char *why, const char *line) {
    env_give_up(lock->env, "the adapter %s: %.*s", why, SHOWN, line);
}

static enum outcome adapter_talk_outcome_of(struct lock *lock, const json_t *body, const char *line) {
    const char *word = json_string_value(json_object_get(body, "outcome"));
    for (size_t each = 0; word && each < sizeof OUTCOMES / sizeof OUTCOMES[0]; each++)
        if (strcmp(OUTCOMES[each].word, word) == 0) return OUTCOMES[each].outcome;
    adapter_give_up(lock, "said no outcome (ok, refused or unknown)", line);
}

/* The answer to the last request; NULL: the line answers an earlier one, which was given up. */
static json_t *body_of(struct lock *lock, const char *line, size_t length) {
    const struct adapter *self = lock->state;
    json_t *body = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    const json_t *id = json_object_get(body, "id");
    if (!json_is_object(body)) adapter_give_up(lock, "said something that is no JSON object", line);
    if (!json_is_integer(id) || json_integer_value(id) > self->id)
        adapter_give_up(lock, "said no id of a question", line);
    if (json_integer_value(id) == self->id) return body;
    json_decref(body);
    return NULL;
}

/* The client's log has it, for a trial in which nobody is ever granted the lock. */
static void note_error(const json_t *body, enum outcome outcome) {
    const char *error = json_string_value(json_object_get(body, "error"));
    if (error && outcome == OUTCOME_UNKNOWN) fprintf(stderr, "%s%.*s\n", ADAPTER_ERROR, SHOWN, error);
}

int64_t adapter_limit_ms(const struct lock *lock, int limits) {
    return limits * env_reply_limit_ms(lock->env);
}

static struct adapter_answer answer_receive(struct lock *lock, int64_t limit_ms) {
    int64_t until_ns = env_mono_ns(lock->env) + limit_ms * ENV_NS_PER_MS, left_ns;
    while ((left_ns = until_ns - env_mono_ns(lock->env)) > 0) {
        const struct env_reply *line = env_adapter_receive(lock->env, left_ns / ENV_NS_PER_MS + 1);
        if (line->kind == ENV_REPLY_ERROR) adapter_give_up(lock, "is gone", line->text);
        if (line->kind != ENV_REPLY_STRING) break;
        json_t *body = body_of(lock, line->text, line->length);
        if (!body) continue;
        struct adapter_answer answer = {adapter_talk_outcome_of(lock, body, line->text), body};
        note_error(body, answer.outcome);
        return answer;
    }
    return (struct adapter_answer){.outcome = OUTCOME_UNKNOWN};
}

struct adapter_answer adapter_ask(struct lock *lock, const char *verb, json_t *more, int64_t limit_ms) {
    struct adapter *self = lock->state;
    json_t *question = json_pack("{s:I,s:s}", "id", ++self->id, "op", verb);
    if (more) json_object_update(question, more);
    char *line = json_dumps(question, JSON_COMPACT);
    if (!line) abort();
    if (!env_adapter_send(lock->env, line)) {
        const struct env_reply *last = env_adapter_receive(lock->env, 0);
        adapter_give_up(lock, "takes no question", last->kind == ENV_REPLY_ERROR ? last->text : verb);
    }
    free(line);
    json_decref(question);
    json_decref(more);
    return answer_receive(lock, limit_ms);
}

struct adapter_answer adapter_ask_strictly(struct lock *lock, const char *verb, json_t *more, int64_t limit_ms) {
    struct adapter_answer answer = adapter_ask(lock, verb, more, limit_ms);
    for (void *each = json_object_iter(answer.body); each; each = json_object_iter_next(answer.body, each)) {
        const char *key = json_object_iter_key(each);
        size_t known = 0;
        while (ANSWER_KEYS[known] && strcmp(ANSWER_KEYS[known], key) != 0) known++;
        if (!ANSWER_KEYS[known]) adapter_give_up(lock, "answered with a key that there is not", key);
    }
    return answer;
}
