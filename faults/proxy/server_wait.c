#include "faults/proxy/server_wait.h"

#include <stdlib.h>
#include <string.h>

enum { MS_PER_S = 1000, NUMBER_MOST = 31 };
enum { LAST = -1, AFTER_BLOCK = -2 };

static const struct waiting_command {
    const char *name;
    int argument; /* where its limit stands */
    int unit_ms;
} WAITING_COMMANDS[] = {
    {"BLPOP", LAST, MS_PER_S},  {"BRPOP", LAST, MS_PER_S},    {"BRPOPLPUSH", LAST, MS_PER_S},
    {"BLMOVE", LAST, MS_PER_S}, {"BZPOPMIN", LAST, MS_PER_S}, {"BZPOPMAX", LAST, MS_PER_S},
    {"BLMPOP", 1, MS_PER_S},    {"BZMPOP", 1, MS_PER_S},      {"WAIT", 2, 1},
    {"WAITAOF", 3, 1},          {"XREAD", AFTER_BLOCK, 1},    {"XREADGROUP", AFTER_BLOCK, 1},
};

static const struct waiting_command *waiting_command_of(const struct resp_word *word) {
    for (size_t each = 0; each < sizeof WAITING_COMMANDS / sizeof WAITING_COMMANDS[0]; each++)
        if (resp_word_is(word, WAITING_COMMANDS[each].name)) return &WAITING_COMMANDS[each];
    return NULL;
}

static int64_t limit_of(struct span number, int unit_ms) {
    char text[NUMBER_MOST + 1] = "", *end;
    if (number.length == 0 || number.length > NUMBER_MOST) return 0;
    memcpy(text, number.bytes, number.length);
    double limit_ms = strtod(text, &end) * unit_ms;
    bool counts = *end == '\0' && limit_ms > 0 && limit_ms < (double)(INT64_MAX / 1000000);
    int64_t whole_ms = counts ? (int64_t)limit_ms : 0;
    return whole_ms + (counts && (double)whole_ms < limit_ms); /* rounded up */
}

int64_t server_wait_ms(const struct resp_scanner *request, struct span message) {
    const struct waiting_command *command = request->elements > 1 ? waiting_command_of(&request->words[0]) : NULL;
    struct resp_cursor cursor = resp_elements(request, message);
    struct span element;
    bool is_next = false;
    if (!command) return 0;
    for (int64_t place = 0; resp_next(&cursor, &element); place++) {
        bool is_last = place == request->elements - 1;
        if (is_next || place == command->argument || (is_last && command->argument == LAST))
            return limit_of(element, command->unit_ms);
        if (command->argument == AFTER_BLOCK && span_is_word(element, "STREAMS")) break; /* keys follow */
        is_next = command->argument == AFTER_BLOCK && span_is_word(element, "BLOCK");
    }
    return 0;
}
