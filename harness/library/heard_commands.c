#include "harness/library/heard_commands.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEEPEST = 8 };

/* --- texts: of bytes that a message format has found to be whole --- */

static void printable_print(FILE *text, const char *bytes, size_t length) {
    for (size_t each = 0; each < length; each++) {
        unsigned char byte = (unsigned char)bytes[each];
        if (byte >= ' ' && byte <= '~') fputc(byte, text);
        else fprintf(text, "\\x%02x", byte);
    }
}

/* The line that begins behind a type, without its end. *after: what follows it. */
static struct span line_of(struct span bytes, struct span *after) {
    const char *end = bytes.bytes + bytes.length, *newline = memchr(bytes.bytes, '\n', bytes.length);
    const char *stop = newline ? newline : end, *next = newline ? newline + 1 : end;
    *after = (struct span){next, (size_t)(end - next)};
    if (stop > bytes.bytes + 1 && stop[-1] == '\r') stop--;
    return (struct span){bytes.bytes + 1, (size_t)(stop - bytes.bytes) - 1};
}

static int64_t number_of(struct span line) {
    char digits[24];
    snprintf(digits, sizeof digits, "%.*s", (int)line.length, line.bytes);
    return strtoll(digits, NULL, 10);
}

/* Prints the value that the bytes begin with, arrays in brackets; returns what follows it. `depth`: how many arrays it
 * is in. */
static struct span value_print(FILE *text, struct span bytes, int depth) {
    struct span none = {bytes.bytes + bytes.length, 0}, rest;
    if (bytes.length == 0 || depth > DEEPEST) return none;
    char type = bytes.bytes[0];
    struct span line = line_of(bytes, &rest);
    int64_t number = strchr("*>~%$=!", type) ? number_of(line) : 0;
    if (type == '_' || number < 0) {
        fputs("nil", text);
    } else if (strchr("*>~%", type)) {
        fputc('[', text);
        for (int64_t each = 0; each < number * (type == '%' ? 2 : 1) && rest.length > 0; each++) {
            if (each > 0) fputs(", ", text);
            rest = value_print(text, rest, depth + 1);
        }
        fputc(']', text);
    } else if (strchr("$=!", type)) {
        size_t length = (size_t)number < rest.length ? (size_t)number : rest.length;
        if (type == '!') fputs("error: ", text);
        printable_print(text, rest.bytes, length);
        if (length + 2 > rest.length) return none;
        rest = (struct span){rest.bytes + length + 2, rest.length - length - 2};
    } else {
        if (type == '-') fputs("error: ", text);
        printable_print(text, line.bytes, line.length);
    }
    return rest;
}

/* *bytes: what follows the value then. */
static json_t *value_json(struct span *bytes) {
    char *printed = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&printed, &length);
    if (!text) abort();
    *bytes = value_print(text, *bytes, 0);
    if (fclose(text) != 0) abort();
    json_t *value = json_string(printed);
    free(printed);
    return value;
}

/* Of an array; of a command that is a line, the line. */
static json_t *value_words_json(struct span bytes) {
    json_t *words = json_array();
    bool is_array = bytes.length > 0 && strchr("*>", bytes.bytes[0]);
    int64_t count = is_array ? number_of(line_of(bytes, &bytes)) : 1;
    for (int64_t each = 0; each < count && bytes.length > 0; each++) json_array_append_new(words, value_json(&bytes));
    return words;
}

/* --- commands --- */

static int64_t heard_now_ns(const struct heard_commands *heard) {
    return shared_page_mono_ns(heard->page) - heard->began_ns;
}

static void fate_set(json_t *command, enum heard_fate fate) {
    json_object_set_new(command, "fate", json_string(heard_fate_name(fate)));
}

void heard_request(struct heard_commands *heard, json_t *list, struct span request, int client, int node,
                   enum heard_fate fate) {
    json_t *command = json_pack("{s:I,s:i,s:b,s:i,s:o}", "mono_ns", (json_int_t)heard_now_ns(heard), "client",
                                client + 1, "watchdog", 0, "node", node + 1, "words", value_words_json(request));
    assert(command);
    fate_set(command, fate);
    json_array_append_new(list, command);
    if (fate != HEARD_WAITS && fate != HEARD_REFUSED) return; /* nobody gets an answer */
    if (!heard->unanswered) heard->unanswered = json_array();
    json_array_append(heard->unanswered, command);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), most = strlen(end);
    return length >= most && strcmp(text + length - most, end) == 0;
}

/* Whether this answers the command. A subscriber is told of messages, too, and once for each channel. */
static bool is_answer_to(const json_t *command, struct span answer) {
    if (answer.length == 0 || !strchr("*>", answer.bytes[0])) return true;
    json_t *words = value_words_json(answer);
    const char *kind = json_string_value(json_array_get(words, 0));
    const char *name = json_string_value(json_array_get(json_object_get(command, "words"), 0));
    bool is_its = answer.bytes[0] == '*' && !(kind && ends_with(kind, "message"));
    if (kind && ends_with(kind, "subscribe")) is_its = name && strcasecmp(kind, name) == 0;
    json_decref(words);
    return is_its;
}

void heard_answer(struct heard_commands *heard, struct span answer, bool reaches) {
    json_t *command = json_array_get(heard->unanswered, 0);
    if (!command || !is_answer_to(command, answer)) return;
    int64_t now_ns = heard_now_ns(heard);
    bool later = now_ns > json_integer_value(json_object_get(command, "mono_ns"));
    const char *fate = json_string_value(json_object_get(command, "fate"));
    json_object_set_new(command, "answer", value_json(&answer));
    if (reaches && later) json_object_set_new(command, "answered_ns", json_integer(now_ns));
    if (!reaches) fate_set(command, HEARD_ANSWER_LOST);
    else if (strcmp(fate, heard_fate_name(HEARD_REFUSED)) != 0) fate_set(command, HEARD_ANSWERED);
    json_array_remove(heard->unanswered, 0);
}

void heard_end(struct heard_commands *heard) {
    size_t each;
    json_t *command;
    json_array_foreach(heard->unanswered, each, command) fate_set(command, HEARD_ANSWER_LOST);
    json_decref(heard->unanswered);
    heard->unanswered = NULL;
}
