/* resp_guard SEED MESSAGES: scans random requests and replies whose ends are known, cut in two at every byte, each
 * piece directly in front of a page that must not be accessed.
 *
 * The generator is the reference: it knows where a message ends, what its first words are and how many elements it has.
 * The scanner must find every message of a table of broken ones broken.
 *
 * Prints one JSON line. Exit status: 0 passed, 1 failed, 2 bad usage or a system call failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults/proxy/resp.h"
#include "harness/scheduler/random.h"

enum { ROOM = 1 << 16, DEPTH_MAX = 6 };

struct made {
    char bytes[ROOM];
    size_t length;
    int64_t elements;
    struct span words[RESP_WORDS];
    size_t word_count;
    bool words_over;
};

static struct random rng;
static char *guard; /* the first byte that must not be accessed */

static void fail(const char *what, const struct made *made, size_t cut) {
    printf("{\"wrong\": \"%s\", \"cut\": %zu, \"length\": %zu}\n", what, cut, made->length);
    fwrite(made->bytes, 1, made->length, stderr);
    exit(1);
}

static void add(struct made *made, const char *bytes, size_t length) {
    if (made->length + length > ROOM) exit(2);
    memcpy(made->bytes + made->length, bytes, length);
    made->length += length;
}

static void add_line(struct made *made, char type, int64_t number) {
    char text[32];
    add(made, text, (size_t)snprintf(text, sizeof text, "%c%lld\r\n", type, (long long)number));
}

static void note_word(struct made *made, size_t start, size_t length, bool counts) {
    if (counts && !made->words_over && made->word_count < RESP_WORDS)
        made->words[made->word_count++] = (struct span){made->bytes + start, length};
}

static void make_bulk(struct made *made, char type, bool counts) {
    char payload[80];
    size_t length = random_below(&rng, sizeof payload);
    for (size_t each = 0; each < length; each++) payload[each] = (char)random_below(&rng, 256);
    add_line(made, type, (int64_t)length);
    note_word(made, made->length, length, counts);
    add(made, payload, length);
    add(made, "\r\n", 2);
}

static void make_value(struct made *made, int depth, bool counts);

static void make_aggregate(struct made *made, char type, int depth, bool outermost) {
    int64_t count = (int64_t)random_below(&rng, 5);
    bool pairs = type == '%' || type == '|';
    add_line(made, type, count);
    if (outermost) made->elements = count;
    bool words = outermost && (type == '*' || type == '>');
    for (int64_t each = 0; each < (pairs ? 2 * count : count); each++) make_value(made, depth + 1, words);
}

static void make_single(struct made *made, char type, bool counts) {
    static const char *const CONTENTS[] = {"", "OK", "1234567", "a\rb", "a\nb", "-1.5e3", "a rather long line of text"};
    const char *content = CONTENTS[random_below(&rng, sizeof CONTENTS / sizeof CONTENTS[0])];
    add(made, &type, 1);
    note_word(made, made->length, strlen(content), counts);
    add(made, content, strlen(content));
    add(made, "\r\n", 2);
}

static void make_value(struct made *made, int depth, bool counts) {
    static const char TYPES[] = "$!=+-:,#(_*~>%|";
    char type = TYPES[random_below(&rng, depth < DEPTH_MAX ? 15 : 10)];
    if (type == '|') {
        make_aggregate(made, '|', depth, false);
        if (depth) made->words_over = true;
        make_value(made, depth ? depth : 1, counts && depth);
    } else if (strchr("*~>%", type)) {
        if (depth) made->words_over = true;
        make_aggregate(made, type, depth, depth == 0);
    } else if (strchr("$!=", type) && random_below(&rng, 4) == 0) {
        note_word(made, made->length, 0, counts);
        add_line(made, type, -1);
    } else if (strchr("$!=", type)) {
        make_bulk(made, type, counts);
    } else {
        make_single(made, type, counts);
    }
}

static void make_message(struct made *made, enum resp_side side) {
    made->length = made->word_count = 0;
    made->elements = 0;
    made->words_over = false;
    if (side == RESP_REPLIES) {
        make_value(made, 0, false);
        return;
    }
    made->elements = 1 + (int64_t)random_below(&rng, 6);
    add_line(made, '*', made->elements);
    for (int64_t each = 0; each < made->elements; each++) make_bulk(made, '$', true);
}

/* The bytes, copied to where one byte too far is a crash. */
static const char *guarded(const char *bytes, size_t length) {
    if (length) memcpy(guard - length, bytes, length);
    return guard - length;
}

static void check_words(const struct made *made, const struct resp_scanner *scanner, size_t cut) {
    bool has_words = scanner->type == '*' || scanner->type == '>';
    if (scanner->length != made->length) fail("length", made, cut);
    if (made->bytes[0] == '|' || !has_words) return;
    if (scanner->elements != made->elements) fail("elements", made, cut);
    for (size_t each = 0; each < made->word_count; each++) {
        const struct resp_word *word = &scanner->words[each];
        const struct span *wanted = &made->words[each];
        bool fits = wanted->length <= RESP_WORD;
        if (word->length != (fits ? wanted->length : RESP_WORD + 1)) fail("length of a word", made, cut);
        if (fits && memcmp(word->bytes, wanted->bytes, wanted->length) != 0) fail("word", made, cut);
    }
    struct resp_cursor cursor = resp_elements(scanner, (struct span){guarded(made->bytes, made->length), made->length});
    struct span element;
    for (size_t each = 0; each < made->word_count; each++)
        if (!resp_next(&cursor, &element) || element.length != made->words[each].length ||
            (element.length && memcmp(element.bytes, made->words[each].bytes, element.length) != 0))
            fail("element", made, cut);
}

static void check_cut(const struct made *made, enum resp_side side, size_t cut) {
    struct resp_scanner scanner;
    size_t used = 0;
    resp_start(&scanner, side);
    enum resp_result first = resp_scan(&scanner, guarded(made->bytes, cut), cut, &used);
    if (first != RESP_MORE || used != cut) fail("first piece", made, cut);
    if (cut && resp_is_between(&scanner)) fail("between", made, cut);
    struct resp_cursor cursor = resp_elements(&scanner, (struct span){guarded(made->bytes, cut), cut});
    struct span element;
    while (resp_next(&cursor, &element))
        if (element.bytes + element.length > guard) fail("element of a head", made, cut);
    size_t rest = made->length - cut;
    enum resp_result second = resp_scan(&scanner, guarded(made->bytes + cut, rest), rest, &used);
    if (second != RESP_WHOLE || used != rest) fail("second piece", made, cut);
    check_words(made, &scanner, cut);
}

static bool is_broken(struct made *made, enum resp_side side) {
    struct resp_scanner scanner;
    size_t used;
    resp_start(&scanner, side);
    return resp_scan(&scanner, guarded(made->bytes, made->length), made->length, &used) == RESP_BROKEN;
}

static void check_broken(void) {
    static const struct {
        enum resp_side side;
        const char *bytes;
    } BROKEN[] = {
        {RESP_REQUESTS, "*1\r\n:1\r\n"},
        {RESP_REQUESTS, "*1\r\n$-1\r\n"},
        {RESP_REQUESTS, "*1\r\n$1\r\nab\r"},
        {RESP_REQUESTS, "*1\n"},
        {RESP_REQUESTS, "*x\r\n"},
        {RESP_REQUESTS, "*\r\n"},
        {RESP_REQUESTS, "*1\r\nPING\r\n"},
        {RESP_REQUESTS, "*1234567890123456\r\n"},
        {RESP_REPLIES, "$?\r\n"},
        {RESP_REPLIES, "*?\r\n"},
        {RESP_REPLIES, "*-2\r\n"},
        {RESP_REPLIES, "$-2\r\n"},
        {RESP_REPLIES, "$--1\r\n"},
        {RESP_REPLIES, "hello\r\n"},
        {RESP_REPLIES, "$3\r\nabcd\r\n"},
        {RESP_REPLIES, "$3\r\nabc\n\r"},
        {RESP_REPLIES, "*1\r\n\r\n"},
        {RESP_REPLIES, "%1\r\n+a\r\n."},
    };
    for (size_t each = 0; each < sizeof BROKEN / sizeof BROKEN[0]; each++) {
        struct made made = {.length = 0};
        add(&made, BROKEN[each].bytes, strlen(BROKEN[each].bytes));
        if (!is_broken(&made, BROKEN[each].side)) fail("not seen to be broken", &made, each);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "usage: resp_guard SEED MESSAGES\n"), 2;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), cuts = 0;
    char *map = mmap(NULL, ROOM + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + ROOM, page, PROT_NONE) != 0) return perror("mmap"), 2;
    guard = map + ROOM;
    rng.state = strtoull(argv[1], NULL, 10);
    static struct made made;
    unsigned long messages = strtoul(argv[2], NULL, 10);
    for (unsigned long each = 0; each < messages; each++) {
        enum resp_side side = each % 2 ? RESP_REPLIES : RESP_REQUESTS;
        make_message(&made, side);
        for (size_t cut = 0; cut < made.length; cut++) check_cut(&made, side, cut);
        cuts += made.length;
    }
    check_broken();
    printf("{\"messages\": %lu, \"cuts\": %zu}\n", messages, cuts);
    return 0;
}
