#include "harness/resource.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const MODES[RESOURCE_MODES] = {"open", "fence-writes", "fence-reads-and-writes", "compare-owner",
                                                  "compare-and-set"};

/* What a request says besides verb, object and value. */
struct access {
    unsigned object;
    bool write, atomic;
    int64_t value, token, actor, op, grant, based_on;
};

bool resource_mode_find(const char *name, enum resource_mode *mode) {
    for (int each = 0; each < RESOURCE_MODES; each++)
        if (strcmp(name, MODES[each]) == 0) return *mode = (enum resource_mode)each, true;
    return false;
}

const char *resource_mode_name(enum resource_mode mode) {
    return MODES[mode];
}

/* --- answers --- */

void resource_answer(struct resource_answers *answers, const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) abort();
    char *bytes = realloc(answers->bytes, answers->length + (size_t)length);
    if (!bytes) abort();
    memcpy(bytes + answers->length, text, (size_t)length);
    answers->bytes = bytes;
    answers->length += (size_t)length;
    free(text);
}

static void answer_pair(struct resource_answers *answers, int64_t value, int64_t version) {
    resource_answer(answers, "*2\r\n:%lld\r\n:%lld\r\n", (long long)value, (long long)version);
}

/* --- the resource --- */

static size_t member_place(const struct resource *resource, int64_t member) {
    size_t low = 0, high = resource->member_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (resource->members[middle] < member) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* False: it was there. */
static bool member_insert(struct resource *resource, int64_t member) {
    size_t place = member_place(resource, member);
    if (place < resource->member_count && resource->members[place] == member) return false;
    if (resource->member_count == resource->member_room) {
        resource->member_room = resource->member_room ? resource->member_room * 2 : 64;
        resource->members = realloc(resource->members, resource->member_room * sizeof *resource->members);
        if (!resource->members) abort();
    }
    memmove(&resource->members[place + 1], &resource->members[place],
            (resource->member_count - place) * sizeof *resource->members);
    resource->members[place] = member;
    resource->member_count++;
    return true;
}

/* NULL: let in. */
static const char *refusal(const struct resource *resource, const struct access *access) {
    static const char no_token[] = "NOTOKEN this store lets nobody in without a fencing token";
    switch (resource->mode) {
    case RESOURCE_FENCE_WRITES:
        if (!access->write) return NULL;
        /* fall through */
    case RESOURCE_FENCE_READS_AND_WRITES:
        if (access->token == 0) return no_token;
        return access->token < resource->newest_token ? "FENCED" : NULL;
    case RESOURCE_COMPARE_OWNER:
        if (access->grant == 0) return "NOGRANT this store lets nobody in who does not say under which grant";
        return access->write && access->grant != resource->owner ? "OWNED somebody else has read since" : NULL;
    case RESOURCE_COMPARE_AND_SET:
        if (!access->write || access->atomic || access->based_on == resource->version[access->object]) return NULL;
        return "CHANGED the write was not computed from the newest version";
    default: return NULL;
    }
}

static int64_t apply(struct resource *resource, const struct access *access) {
    int64_t *value = &resource->value[access->object];
    if (!access->write) return *value;
    resource->version[access->object]++;
    if (access->object == HISTORY_OBJECT_SET) {
        bool new = member_insert(resource, access->value);
        *value = (int64_t)resource->member_count;
        return new;
    }
    return *value = access->atomic ? (int64_t)((uint64_t)*value + (uint64_t)access->value) : access->value;
}

static void serve_access(struct resource *resource, struct resource_answers *answers, const struct access *access) {
    const char *refused = refusal(resource, access);
    int64_t before = resource->version[access->object];
    int64_t value = refused ? 0 : apply(resource, access);
    int64_t based_on = access->atomic ? before : access->based_on;
    actor_append(&resource->actor,
                 (struct history_record){.kind = access->write ? HISTORY_STORE_WRITE : HISTORY_STORE_READ,
                                         .outcome = refused ? OUTCOME_REFUSED : OUTCOME_OK,
                                         .object = (uint8_t)access->object,
                                         .flags = (uint8_t)((access->atomic ? HISTORY_FLAG_ATOMIC : 0) |
                                                            (refused ? HISTORY_FLAG_FENCED : 0)),
                                         .name = access->actor ? (uint32_t)access->actor : resource->stranger,
                                         .op = (uint32_t)access->op,
                                         .grant = (uint32_t)access->grant,
                                         .token = access->token,
                                         .value = access->write ? access->value : value,
                                         .extra = access->write ? based_on : before});
    if (refused && strcmp(refused, "FENCED") == 0) {
        resource_answer(answers, "-FENCED token %lld is older than %lld, the newest seen\r\n", (long long)access->token,
                        (long long)resource->newest_token);
    } else if (refused) {
        resource_answer(answers, "-%s\r\n", refused);
    } else {
        bool registers = access->write || resource->mode == RESOURCE_FENCE_READS_AND_WRITES;
        if (registers && access->token > resource->newest_token) resource->newest_token = access->token;
        if (!access->write) resource->owner = access->grant;
        answer_pair(answers, value, resource->version[access->object]);
    }
}

/* --- requests --- */

static bool word_is(const redisReply *word, const char *text) {
    return strcasecmp(word->str, text) == 0;
}

static bool word_number(const redisReply *word, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(word->str, &end, 10);
    return errno == 0 && end != word->str && *end == '\0';
}

static bool fits_index(int64_t value) {
    return value >= 0 && value <= UINT32_MAX;
}

static bool parse_options(redisReply **words, size_t count, struct access *access) {
    for (size_t each = 0; each + 1 < count; each += 2) {
        int64_t *target = word_is(words[each], "TOKEN")     ? &access->token
                          : word_is(words[each], "ACTOR")   ? &access->actor
                          : word_is(words[each], "OP")      ? &access->op
                          : word_is(words[each], "GRANT")   ? &access->grant
                          : word_is(words[each], "VERSION") ? &access->based_on
                                                            : NULL;
        if (!target || !word_number(words[each + 1], target)) return false;
    }
    return count % 2 == 0 && access->token >= 0 && fits_index(access->op) && fits_index(access->grant) &&
           fits_index(access->actor);
}

static bool parse_access(redisReply **words, size_t count, struct access *access) {
    *access = (struct access){.based_on = -1};
    access->atomic = word_is(words[0], "ADD");
    access->write = access->atomic || word_is(words[0], "SET");
    size_t used = access->write ? 3 : 2;
    if (count < used) return false;
    for (unsigned object = 1; object < HISTORY_OBJECT_COUNT; object++)
        if (word_is(words[1], history_object_name(object))) access->object = object;
    bool fits = access->object == HISTORY_OBJECT_SET ? access->atomic || !access->write
                                                     : access->object != HISTORY_OBJECT_REGISTER || !access->atomic;
    if (!access->object || !fits || (access->write && !word_number(words[2], &access->value))) return false;
    return parse_options(words + used, count - used, access);
}

static void serve_members(const struct resource *resource, struct resource_answers *answers) {
    resource_answer(answers, "*%zu\r\n", resource->member_count);
    for (size_t each = 0; each < resource->member_count; each++)
        resource_answer(answers, ":%lld\r\n", (long long)resource->members[each]);
}

/* A request is an array of strings, as every Redis client sends it. */
static bool is_request(const redisReply *request) {
    if (request->type != REDIS_REPLY_ARRAY || request->elements == 0) return false;
    for (size_t each = 0; each < request->elements; each++)
        if (request->element[each]->type != REDIS_REPLY_STRING) return false;
    return true;
}

bool resource_serve(struct resource *resource, const redisReply *request, struct resource_answers *answers) {
    struct access access;
    redisReply **words = request->element;
    if (!is_request(request)) {
        resource_answer(answers, "-ERR a request is an array of strings\r\n");
    } else if (word_is(words[0], "GET") || word_is(words[0], "SET") || word_is(words[0], "ADD")) {
        if (parse_access(words, request->elements, &access)) serve_access(resource, answers, &access);
        else
            resource_answer(answers, "-ERR usage: GET|SET|ADD register|counter|set [value] [TOKEN t] [VERSION v] "
                                     "[ACTOR a] [OP n] [GRANT g], numbers only\r\n");
    } else if (word_is(words[0], "MEMBERS")) {
        serve_members(resource, answers);
    } else if (word_is(words[0], "MODE")) {
        resource_answer(answers, "+%s\r\n", MODES[resource->mode]);
    } else if (word_is(words[0], "PING")) {
        resource_answer(answers, "+PONG\r\n");
    } else if (word_is(words[0], "QUIT")) {
        resource_answer(answers, "+OK\r\n");
        return false;
    } else {
        resource_answer(answers, "-ERR unknown command; there are GET SET ADD MEMBERS MODE PING QUIT\r\n");
    }
    return true;
}
