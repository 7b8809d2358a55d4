#include "harness/resource/resource.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const MODES[RESOURCE_MODES] = {"open", "fence-writes", "fence-reads-and-writes", "compare-owner",
                                                  "compare-and-set"};

bool resource_mode_find(const char *name, enum resource_mode *mode) {
    for (int each = 0; each < RESOURCE_MODES; each++)
        if (strcmp(name, MODES[each]) == 0) {
            *mode = (enum resource_mode)each;
            return true;
        }
    return false;
}

const char *resource_mode_name(enum resource_mode mode) {
    return MODES[mode];
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

/* False: the set has it already. */
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

/* Why an access lacks what the mode checks; NULL: it does not. */
static const char *objection(enum resource_mode mode, const struct resource_access *access) {
    bool checks_token = mode == RESOURCE_FENCE_READS_AND_WRITES || (mode == RESOURCE_FENCE_WRITES && access->write);
    if (checks_token && access->token == 0) return "NOTOKEN this store lets nobody in without a fencing token";
    if (mode == RESOURCE_COMPARE_OWNER && access->grant == 0)
        return "NOGRANT this store lets nobody in who does not say under which grant";
    return NULL;
}

static bool is_refused(const struct resource *resource, const struct resource_access *access) {
    switch (resource->mode) {
    case RESOURCE_FENCE_WRITES: return access->write && access->token < resource->newest_token;
    case RESOURCE_FENCE_READS_AND_WRITES: return access->token < resource->newest_token;
    case RESOURCE_COMPARE_OWNER: return access->write && access->grant != resource->owner;
    case RESOURCE_COMPARE_AND_SET:
        return access->write && !access->atomic && access->based_on != resource->version[access->object];
    default: return false;
    }
}

static int64_t apply(struct resource *resource, const struct resource_access *access) {
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

static struct resource_result carry_out(struct resource *resource, const struct resource_access *access) {
    struct resource_result result = {.refused = is_refused(resource, access)};
    if (result.refused) {
        result.newest_token = resource->newest_token;
    } else {
        bool registers = access->write || resource->mode == RESOURCE_FENCE_READS_AND_WRITES;
        result.value = apply(resource, access);
        if (registers && access->token > resource->newest_token) resource->newest_token = access->token;
        if (!access->write) resource->owner = access->grant;
    }
    result.version = resource->version[access->object];
    return result;
}

/* --- the result of an access --- */

static void resource_record(struct resource *resource, const struct resource_access *access,
                            const struct resource_result *result) {
    int64_t based_on = access->atomic ? result->version - !result->refused : access->based_on;
    actor_append(&resource->actor,
                 (struct history_record){.kind = access->write ? HISTORY_STORE_WRITE : HISTORY_STORE_READ,
                                         .outcome = result->refused ? OUTCOME_REFUSED : OUTCOME_OK,
                                         .object = (uint8_t)access->object,
                                         .flags = (uint8_t)((access->atomic ? HISTORY_FLAG_ATOMIC : 0) |
                                                            (result->refused ? HISTORY_FLAG_FENCED : 0)),
                                         .name = access->actor ? (uint32_t)access->actor : resource->stranger,
                                         .op = (uint32_t)access->op,
                                         .grant = (uint32_t)access->grant,
                                         .token = access->token,
                                         .value = access->write ? access->value : result->value,
                                         .extra = access->write ? based_on : result->version});
}

static void answer_refusal(struct reply_text *reply, enum resource_mode mode, int64_t token, int64_t newest_token) {
    switch (mode) {
    case RESOURCE_COMPARE_OWNER: reply_write(reply, "-OWNED somebody else has read since\r\n"); break;
    case RESOURCE_COMPARE_AND_SET:
        reply_write(reply, "-CHANGED the write was not computed from the newest version\r\n");
        break;
    default:
        reply_write(reply, "-FENCED token %lld is older than ", (long long)token);
        if (newest_token) reply_write(reply, "%lld, ", (long long)newest_token);
        reply_write(reply, "the newest seen\r\n");
        break;
    }
}

void resource_conclude(struct resource *resource, const struct resource_access *access,
                       const struct resource_result *result, struct reply_text *reply) {
    resource_record(resource, access, result);
    if (result->refused) answer_refusal(reply, resource->mode, access->token, result->newest_token);
    else reply_write(reply, "*2\r\n:%lld\r\n:%lld\r\n", (long long)result->value, (long long)result->version);
}

static enum resource_served serve_access(struct resource *resource, struct reply_text *reply,
                                         const struct resource_access *access) {
    struct resource_result result = {.refused = true, .version = resource->version[access->object]};
    const char *why = objection(resource->mode, access);
    if (why) {
        resource_record(resource, access, &result);
        reply_write(reply, "-%s\r\n", why);
        return RESOURCE_ANSWERED;
    }
    if (resource->elsewhere) return RESOURCE_ACCESS;
    result = carry_out(resource, access);
    resource_conclude(resource, access, &result, reply);
    return RESOURCE_ANSWERED;
}

/* --- requests --- */

static bool word_is(const redisReply *word, const char *text) {
    return word->len == strlen(text) && strncasecmp(word->str, text, word->len) == 0;
}

bool resource_number(const char *text, size_t length, int64_t *number) {
    bool is_negative = length > 0 && text[0] == '-';
    size_t at = is_negative;
    if (at == length) return false;
    for (*number = 0; at < length; at++) {
        int digit = text[at] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, is_negative ? -digit : digit, number))
            return false;
    }
    return true;
}

static bool fits_index(int64_t value) {
    return value >= 0 && value <= UINT32_MAX;
}

static bool resource_parse_options(redisReply **words, size_t count, struct resource_access *access) {
    for (size_t each = 0; each + 1 < count; each += 2) {
        int64_t *target = word_is(words[each], "TOKEN")     ? &access->token
                          : word_is(words[each], "ACTOR")   ? &access->actor
                          : word_is(words[each], "OP")      ? &access->op
                          : word_is(words[each], "GRANT")   ? &access->grant
                          : word_is(words[each], "VERSION") ? &access->based_on
                                                            : NULL;
        if (!target || !resource_number(words[each + 1]->str, words[each + 1]->len, target)) return false;
    }
    return count % 2 == 0 && access->token >= 0 && access->based_on >= -1 && fits_index(access->op) &&
           fits_index(access->grant) && fits_index(access->actor);
}

static bool parse_access(redisReply **words, size_t count, struct resource_access *access) {
    *access = (struct resource_access){.based_on = -1};
    access->atomic = word_is(words[0], "ADD");
    access->write = access->atomic || word_is(words[0], "SET");
    size_t used = access->write ? 3 : 2;
    if (count < used) return false;
    for (unsigned object = 1; object < HISTORY_OBJECT_COUNT; object++)
        if (word_is(words[1], history_object_name(object))) access->object = object;
    bool fits = access->object == HISTORY_OBJECT_SET ? access->atomic || !access->write
                                                     : access->object != HISTORY_OBJECT_REGISTER || !access->atomic;
    if (!access->object || !fits || (access->write && !resource_number(words[2]->str, words[2]->len, &access->value)))
        return false;
    return resource_parse_options(words + used, count - used, access);
}

static void serve_members(const struct resource *resource, struct reply_text *reply) {
    if (resource->elsewhere) return reply_write(reply, "-ERR they are in the table: SELECT value FROM member\r\n");
    reply_write(reply, "*%zu\r\n", resource->member_count);
    for (size_t each = 0; each < resource->member_count; each++)
        reply_write(reply, ":%lld\r\n", (long long)resource->members[each]);
}

/* A request is an array of strings, as every Redis client sends it. */
static bool resource_is_request(const redisReply *request) {
    if (request->type != REDIS_REPLY_ARRAY || request->elements == 0) return false;
    for (size_t each = 0; each < request->elements; each++)
        if (request->element[each]->type != REDIS_REPLY_STRING) return false;
    return true;
}

enum resource_served resource_serve(struct resource *resource, const redisReply *request, struct reply_text *reply,
                                    struct resource_access *access) {
    redisReply **words = request->element;
    if (!resource_is_request(request)) {
        reply_write(reply, "-ERR a request is an array of strings\r\n");
    } else if (word_is(words[0], "GET") || word_is(words[0], "SET") || word_is(words[0], "ADD")) {
        if (parse_access(words, request->elements, access)) return serve_access(resource, reply, access);
        reply_write(reply, "-ERR usage: GET|SET|ADD register|counter|set [value] [TOKEN t] [VERSION v] "
                           "[ACTOR a] [OP n] [GRANT g], numbers only\r\n");
    } else if (word_is(words[0], "MEMBERS")) {
        serve_members(resource, reply);
    } else if (word_is(words[0], "MODE")) {
        reply_write(reply, "+%s\r\n", MODES[resource->mode]);
    } else if (word_is(words[0], "PING")) {
        if (resource->elsewhere) return RESOURCE_PING;
        reply_write(reply, "+PONG\r\n");
    } else if (word_is(words[0], "QUIT")) {
        reply_write(reply, "+OK\r\n");
        return RESOURCE_QUIT;
    } else {
        reply_write(reply, "-ERR unknown command; there are GET SET ADD MEMBERS MODE PING QUIT\r\n");
    }
    return RESOURCE_ANSWERED;
}
