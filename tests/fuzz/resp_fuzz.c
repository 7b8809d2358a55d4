/* The proxy's view of hostile bytes: however they are cut, the scanner finds the same messages in them, a cursor stays
 * inside them, and the reply matcher answers no more requests than it was given.
 *
 * The first byte chooses: bit 0 a stream of replies instead of requests, the others how it is cut. Every piece is a
 * copy of exactly its size, so that a sanitizer sees one byte too far. */
#include <stdlib.h>
#include <string.h>

#include "faults/proxy/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGES_MOST = 4096 };

struct found {
    size_t ends[MESSAGES_MOST];
    struct resp_scanner scanners[MESSAGES_MOST]; /* as they were at these ends */
    size_t count;
    enum resp_result last;
};

static void scan_piece(struct resp_scanner *scanner, const char *bytes, size_t length, size_t at, struct found *found) {
    char *exact = malloc(length ? length : 1);
    if (!exact) abort();
    memcpy(exact, bytes, length);
    for (size_t used, done = 0; done < length && found->last != RESP_BROKEN; done += used) {
        found->last = resp_scan(scanner, exact + done, length - done, &used);
        if (used == 0 || used > length - done) abort();
        if (found->last == RESP_MORE && used != length - done) abort();
        if (found->last != RESP_WHOLE || found->count == MESSAGES_MOST) continue;
        found->ends[found->count] = at + done + used;
        found->scanners[found->count++] = *scanner;
    }
    free(exact);
}

static void scan_in_pieces(enum resp_side side, const char *bytes, size_t length, size_t most, struct found *found) {
    struct resp_scanner scanner;
    resp_start(&scanner, side);
    found->count = 0;
    found->last = RESP_MORE;
    for (size_t at = 0; at < length && found->last != RESP_BROKEN; at += most)
        scan_piece(&scanner, bytes + at, length - at < most ? length - at : most, at, found);
}

static void compare(const struct found *one, const struct found *other) {
    if (one->count != other->count || (one->last == RESP_BROKEN) != (other->last == RESP_BROKEN)) abort();
    for (size_t each = 0; each < one->count; each++) {
        const struct resp_scanner *left = &one->scanners[each], *right = &other->scanners[each];
        if (one->ends[each] != other->ends[each]) abort();
        if (left->type != right->type || left->elements != right->elements || left->length != right->length) abort();
        if (left->lead != right->lead || left->lead > left->length) abort();
        for (int word = 0; word < RESP_WORDS; word++) {
            uint8_t letters = left->words[word].length;
            if (letters != right->words[word].length || letters > RESP_WORD + 1) abort();
            if (letters > RESP_WORD) continue;
            if (memcmp(left->words[word].bytes, right->words[word].bytes, letters) != 0) abort();
        }
    }
}

/* All elements, of the message and of its first half. */
static void walk(const struct resp_scanner *scanner, const char *bytes, size_t length) {
    char *exact = malloc(length ? length : 1);
    if (!exact) abort();
    memcpy(exact, bytes, length);
    struct resp_cursor cursor = resp_elements(scanner, (struct span){exact, length});
    struct span element;
    while (resp_next(&cursor, &element))
        if (element.length && (element.bytes < exact || element.bytes + element.length > exact + length)) abort();
    free(exact);
}

static struct rule *rule(const char *line) {
    struct span words[16];
    struct history_error error;
    size_t count = 0;
    for (const char *at = line; *at; at += strspn(at, " "), count++) {
        words[count] = (struct span){at, strcspn(at, " ")};
        at += words[count].length;
    }
    struct rule *made = rule_parse(words, count, &error);
    if (!made) abort();
    return made;
}

static void match(const struct found *found, const char *bytes, enum resp_side side) {
    struct rule *rules[] = {rule("a * to-server drop COMMAND SET KEY k"), rule("b * to-server drop ARG x"),
                            rule("c * to-client drop PUSH KEY c ARG x")};
    size_t memory_bytes = 0;
    struct reply_matcher matcher = {.memory_bytes = &memory_bytes};
    for (size_t each = 0; each < found->count; each++) {
        const struct resp_scanner *scanner = &found->scanners[each];
        const char *start = bytes + found->ends[each] - scanner->length;
        struct message message = {.scanner = scanner, .head = {start, (size_t)scanner->length}};
        walk(scanner, start, (size_t)scanner->length);
        walk(scanner, start, (size_t)scanner->length / 2);
        if (side == RESP_REQUESTS) {
            bool requested = reply_matcher_add_request(&matcher, scanner);
            for (int which = 0; which < 2; which++)
                if (rule_matches(rules[which], &message) && requested)
                    reply_matcher_mark(&matcher, matcher.requested - 1, MARK_RULE, which);
            if (matcher.requested > 1 && each % 3 == 0) reply_matcher_swap(&matcher);
        } else if (each % 3 == 0) {
            reply_matcher_add_request(&matcher,
                                      scanner); /* a reply like a request: whatever may stand in the matcher */
        } else {
            struct matched_reply matched = reply_matcher_match_reply(&matcher, scanner);
            message.matched = &matched;
            rule_matches(rules[2], &message);
            reply_matcher_finish_reply(&matcher, &matched);
        }
        if (matcher.answered > matcher.requested) abort();
    }
    reply_matcher_close(&matcher);
    if (memory_bytes) abort();
    for (int which = 0; which < 3; which++) rule_free(rules[which]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct found whole, cut;
    if (size == 0) return 0;
    enum resp_side side = data[0] & 1 ? RESP_REPLIES : RESP_REQUESTS;
    const char *bytes = (const char *)data + 1;
    scan_in_pieces(side, bytes, size - 1, size, &whole);
    scan_in_pieces(side, bytes, size - 1, 1 + (data[0] >> 1) % 16, &cut);
    compare(&whole, &cut);
    match(&whole, bytes, side);
    return 0;
}
