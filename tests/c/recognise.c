/* recognise redis|postgres: plays sessions that standard input describes, and prints their events, a line each.
 *
 * Lines of input; bytes are in hexadecimal:
 *   settings DATABASE ISOLATION     before all others: the usual database, "-" for none; the default isolation (0:
 * usual) table OID NAME KEY...           what is known of a table hint KIND PATTERN [ACTION OWNER LEASE [ANSWER]] open
 * SESSION > SESSION NS BYTES              a request: whole messages < SESSION NS BYTES              an answer
 *   >> SESSION NS BYTES             bytes of the stream of requests, as they came
 *   << SESSION NS BYTES
 *   close SESSION NS
 * A line of output is the session, and the event as wire_event_print writes it, or with --times also when the statement
 * was asked and answered, and its text. Exit status: 0; 1 a line was not understood; 2 there is no such service. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/library_service/byte_queue.h"
#include "harness/recogniser/recogniser.h"

enum { SESSIONS = 64, TABLES = 32, HINTS = 32, LINE = 1 << 24, PRINTED = 2048 };

static struct table_facts tables[TABLES];
static uint32_t oids[TABLES];
static struct lock_hint hints[HINTS];
static int table_count, hint_count;
static struct recogniser_settings settings;
static struct recogniser *recogniser;
static struct played_session {
    struct wire_session *session;
    struct byte_queue requests, answers;
} sessions[SESSIONS];
static bool with_times;

static void event_show(void *context, const struct wire_event *event) {
    char line[PRINTED];
    (void)context;
    printf("%lld %s", (long long)event->session, wire_event_print(event, line, sizeof line));
    if (with_times) {
        printf("\t%lld\t%lld\t%lld", (long long)event->asked_ns, (long long)event->answered_ns,
               (long long)event->transaction);
        printf("\t%s", event->text);
    }
    putchar('\n');
}

static const struct table_facts *table_find(void *context, uint32_t oid, const char *name) {
    (void)context;
    for (int each = 0; each < table_count; each++)
        if (oid ? oids[each] == oid : strcmp(tables[each].name, name) == 0) return &tables[each];
    return NULL;
}

static char *word_next(char **rest) {
    char *word = strsep(rest, " \n");
    return word && *word ? strdup(word) : NULL;
}

static int64_t number_next(char **rest) {
    const char *word = strsep(rest, " \n");
    return word ? strtoll(word, NULL, 10) : 0;
}

static bool table_line(char *rest) {
    if (table_count == TABLES) return false;
    oids[table_count] = (uint32_t)number_next(&rest);
    tables[table_count].name = word_next(&rest);
    for (int key = 0; key < TABLE_KEYS; key++) tables[table_count].keys[key] = word_next(&rest);
    return tables[table_count++].name;
}

static int named_number(const char *name, const char *const *names, int count) {
    for (int each = 0; each < count; each++)
        if (name && strcmp(names[each], name) == 0) return each;
    return -1;
}

static bool hint_line(char *rest) {
    static const char *const KINDS[] = {"key", "list", "no-key", "script", "table"};
    static const char *const ACTIONS[] = {"acquires", "releases", "extends", "harmless"};
    if (hint_count == HINTS) return false;
    int kind = named_number(strsep(&rest, " \n"), KINDS, 5);
    struct lock_hint *hint = &hints[hint_count++];
    hint->kind = (enum lock_hint_kind)kind;
    hint->pattern = word_next(&rest);
    if (kind == HINT_SCRIPT) {
        int action = named_number(strsep(&rest, " \n"), ACTIONS, 4);
        hint->action = (enum lock_hint_action)action;
        hint->owner_argument = (int)number_next(&rest);
        hint->lease_argument = (int)number_next(&rest);
        hint->done_answer = rest ? word_next(&rest) : NULL;
        if (action < 0) return false;
    }
    return kind >= 0 && hint->pattern;
}

static bool settings_line(char *rest) {
    char *database = word_next(&rest);
    settings.database = database && strcmp(database, "-") != 0 ? database : NULL;
    settings.isolation = (enum wire_isolation)number_next(&rest);
    return database;
}

static void recogniser_begin(void) {
    settings.hint_count = hint_count;
    settings.hints = hints;
    if (!recogniser) recogniser = recogniser_open(&settings);
}

static struct played_session *session_of(char **rest) {
    int64_t number = number_next(rest);
    if (number < 0 || number >= SESSIONS) return NULL;
    struct played_session *session = &sessions[number];
    if (session->session) return session;
    bool is_postgres = settings.service == WIRE_POSTGRES;
    recogniser_begin();
    session->session = wire_session_open(recogniser, number);
    byte_queue_begin(&session->requests, is_postgres ? &POSTGRES_REQUEST_FORMAT : &RESP_REQUEST_FORMAT);
    byte_queue_begin(&session->answers, is_postgres ? &POSTGRES_REPLY_FORMAT : &RESP_REPLY_FORMAT);
    return session;
}

static int hex_digit(char digit) {
    static const char DIGITS[] = "0123456789abcdef";
    const char *found = digit ? strchr(DIGITS, digit) : NULL;
    return found ? (int)(found - DIGITS) : -1;
}

static size_t bytes_from(char *hex) {
    size_t length = 0;
    for (; hex_digit(hex[2 * length]) >= 0 && hex_digit(hex[2 * length + 1]) >= 0; length++)
        hex[length] = (char)(hex_digit(hex[2 * length]) << 4 | hex_digit(hex[2 * length + 1]));
    return length;
}

static bool script_line(char *rest) {
    if (!rest) return false;
    recogniser_begin();
    recogniser_script_add(recogniser, (struct span){rest, bytes_from(rest)});
    return true;
}

static bool message_line(const char *verb, char *rest) {
    struct played_session *session = session_of(&rest);
    bool asks = verb[0] == '>';
    if (!session || !rest) return false;
    int64_t at_ns = number_next(&rest);
    if (!rest) return false;
    struct span bytes = {rest, bytes_from(rest)};
    void (*hand)(struct wire_session *, struct span, int64_t) = asks ? wire_session_request : wire_session_answer;
    if (!verb[1]) {
        hand(session->session, bytes, at_ns);
        return true;
    }
    struct byte_queue *queue = asks ? &session->requests : &session->answers;
    byte_queue_add(queue, bytes.bytes, bytes.length);
    for (; queue->count > 0; byte_queue_drop(queue)) hand(session->session, byte_queue_first(queue), at_ns);
    return !queue->broken;
}

static void session_end(struct played_session *session, int64_t at_ns) {
    if (!session->session) return;
    wire_session_close(session->session, at_ns);
    byte_queue_free(&session->requests);
    byte_queue_free(&session->answers);
    session->session = NULL;
}

static bool line_play(char *line) {
    const char *verb = strsep(&line, " \n");
    if (!*verb) return true;
    if (strcmp(verb, "settings") == 0) return settings_line(line);
    if (strcmp(verb, "table") == 0) return table_line(line);
    if (strcmp(verb, "hint") == 0) return hint_line(line);
    if (strcmp(verb, "script") == 0) return script_line(line);
    if (strcmp(verb, "open") == 0) return session_of(&line);
    if (strcmp(verb, "close") != 0) return (verb[0] == '>' || verb[0] == '<') && message_line(verb, line);
    struct played_session *session = session_of(&line);
    if (session) session_end(session, number_next(&line));
    return session;
}

int main(int argc, char **argv) {
    static char line[LINE];
    if (argc < 2 || (strcmp(argv[1], "redis") != 0 && strcmp(argv[1], "postgres") != 0)) return 2;
    settings = (struct recogniser_settings){.service = strcmp(argv[1], "redis") == 0 ? WIRE_REDIS : WIRE_POSTGRES,
                                            .event = event_show,
                                            .table = table_find};
    with_times = argc > 2 && strcmp(argv[2], "--times") == 0;
    int status = 0;
    while (status == 0 && fgets(line, sizeof line, stdin)) status = !line_play(line);
    for (int each = 0; each < SESSIONS; each++) session_end(&sessions[each], 0);
    if (recogniser) recogniser_close(recogniser);
    return status;
}
