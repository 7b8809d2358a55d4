/* Judges workloads that are written as text (tests/promises/README.md has the form) and prints what is broken: a line
 * for each broken promise, with tabs: number of the workload, promise, line of the event, line of the other event,
 * expected, found, sentence. With --excused: also a line "excused" for each second hold that is not required to be
 * none. Exit status 2: a line is not understood. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/promises/promises.h"

enum { EVENTS_MOST = 100000, LINE_SIZE = 512, NO_INDEX = -1 };

static struct call_event events[EVENTS_MOST];
static int lines[EVENTS_MOST];
static bool open_call[EVENTS_MOST];
static size_t count;
static struct library_facts facts;
static int line_number, workload;
static bool shows_excuses;
static char forms[EVENTS_MOST / 100][32];
static size_t form_count;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fprintf(stderr, "line %d: ", line_number);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(2);
}

static int place_in(const char *const *words, const char *word) {
    for (int at = 0; words[at]; at++)
        if (!strcmp(words[at], word)) return at;
    return NO_INDEX;
}

static int64_t ns_of(const char *text) {
    char *end;
    double ms = strtod(text, &end);
    if (end == text || *end) fail("no time in ms: %s", text);
    return (int64_t)(ms * 1e6 + (ms < 0 ? -0.5 : 0.5));
}

static int64_t number_of(const char *text) {
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end) fail("no number: %s", text);
    return value;
}

static const char *value_of(const char *word, const char *key) {
    size_t length = strlen(key);
    return !strncmp(word, key, length) && word[length] == '=' ? word + length + 1 : NULL;
}

/* --- facts --- */

static void read_fact(const char *word) {
    static const char *const OWNERS[] = {"thread", "object", "thread-object", NULL};
    const char *value;
    if ((value = value_of(word, "owner"))) {
        int owner = place_in(OWNERS, value);
        if (owner == NO_INDEX) fail("no owner: %s", value);
        facts.owner = (enum call_owner)owner;
    } else if ((value = value_of(word, "permits"))) facts.permits = (int)number_of(value);
    else if ((value = value_of(word, "default"))) facts.default_lease_ms = number_of(value);
    else if ((value = value_of(word, "divisor"))) facts.watchdog_divisor = (int)number_of(value);
    else if ((value = value_of(word, "unit"))) facts.lease_unit_ms = number_of(value);
    else if ((value = value_of(word, "nodes"))) facts.nodes = (int)number_of(value);
    else if ((value = value_of(word, "timer"))) facts.timer_ms = number_of(value);
    else if ((value = value_of(word, "silence"))) facts.silence_ms = number_of(value);
    else if ((value = value_of(word, "loss")))
        facts.loss_notice = strcmp(value, "lease") ? LOSS_BY_RENEWAL : LOSS_BY_LEASE;
    else if ((value = value_of(word, "place"))) facts.place_ms = number_of(value);
    else if ((value = value_of(word, "poll"))) facts.poll_ms = number_of(value);
    else if (!strcmp(word, "reenters")) facts.reenters = true;
    else if (!strcmp(word, "write-reads")) facts.write_reads = true;
    else if (!strcmp(word, "tokens")) facts.tokens = true;
    else if (!strcmp(word, "validity")) facts.validity = true;
    else if (!strcmp(word, "key")) facts.lease_key = true;
    else if (!strcmp(word, "lenient-release")) facts.lenient_release = true;
    else if (!strcmp(word, "parts")) facts.parts = true;
    else if (!strcmp(word, "told")) facts.told = true;
    else if (!strcmp(word, "fair")) facts.fair = true;
    else if (!strcmp(word, "transactions")) facts.transactions = true;
    else fail("no fact: %s", word);
}

/* --- events --- */

/* "A" or "A.2" or "c7.2". */
static void read_caller(const char *word, int *client, int *thread) {
    char *end = NULL;
    *thread = 1;
    if (word[0] == 'c') *client = (int)strtol(word + 1, &end, 10);
    else if (word[0] >= 'A' && word[0] <= 'Z') *client = word[0] - 'A', end = (char *)(uintptr_t)(word + 1);
    if (end && *end == '.') *thread = (int)strtol(end + 1, &end, 10);
    if (!end || *end) fail("no client: %s", word);
}

static uint32_t call_of(int client, int thread) {
    for (size_t at = count; at-- > 0;)
        if (open_call[at] && events[at].asked.client == client && events[at].asked.thread == thread)
            return (uint32_t)at;
    fail("nothing is under way of client %d, thread %d", client, thread);
}

static void read_call_option(struct call *call, const char *word) {
    static const char *const MODES[] = {"exclusive", "read", "write", "permit", NULL};
    const char *value;
    int mode = place_in(MODES, word);
    if (mode != NO_INDEX) call->mode = (enum call_mode)mode;
    else if (!strcmp(word, "try")) call->wait = WAIT_NONE;
    else if (!strcmp(word, "forever")) call->wait = WAIT_FOREVER;
    else if ((value = value_of(word, "wait"))) call->wait = WAIT_TIME, call->wait_ms = number_of(value);
    else if ((value = value_of(word, "given"))) call->lease = LEASE_GIVEN, call->lease_ms = number_of(value);
    else if (!strcmp(word, "over")) call->over = true;
    else if (!strcmp(word, "again")) call->again = true;
    else if (!strcmp(word, "renewed")) call->lease = LEASE_RENEWED;
    else if (!strcmp(word, "endless")) call->lease = LEASE_ENDLESS;
    else if (!strcmp(word, "default")) call->lease = LEASE_DEFAULT;
    else if ((value = value_of(word, "lock"))) call->lock = (int)number_of(value);
    else if ((value = value_of(word, "resource"))) call->resource = (int)number_of(value);
    else if ((value = value_of(word, "form"))) {
        if (form_count == sizeof forms / sizeof forms[0]) fail("too many forms");
        snprintf(forms[form_count], sizeof forms[0], "%s", value);
        call->form = forms[form_count++];
    } else if (call->verb == CALL_CANCEL) {
        int client, thread;
        read_caller(word, &client, &thread);
        call->cancels = call_of(client, thread);
        call->resource = events[call->cancels].asked.resource;
    } else fail("no option of a call: %s", word);
}

static void read_ask(struct call_event *event, const char *caller, int verb) {
    struct call *call = &event->asked;
    event->kind = EVENT_ASK;
    *call = (struct call){.lock = 1, .verb = (enum call_verb)verb, .wait = WAIT_FOREVER, .lease = LEASE_DEFAULT};
    read_caller(caller, &call->client, &call->thread);
    for (const char *word; (word = strtok(NULL, " "));) read_call_option(call, word);
    open_call[count] = true;
}

static void read_answer(struct call_event *event, const char *caller, int outcome) {
    int client, thread;
    const char *value;
    event->kind = EVENT_ANSWER;
    event->outcome = (enum outcome)outcome;
    read_caller(caller, &client, &thread);
    event->call = call_of(client, thread);
    open_call[event->call] = false;
    for (const char *word; (word = strtok(NULL, " "));) {
        if (!strcmp(word, "cancelled")) event->cancelled = true;
        else if ((value = value_of(word, "token"))) event->token = number_of(value);
        else if ((value = value_of(word, "valid"))) event->valid_until_ns = ns_of(value);
        else if ((value = value_of(word, "timers-late"))) event->timers_late_ns = ns_of(value);
        else fail("no part of an answer: %s", word);
    }
}

static void read_strike(struct call_event *event, const char *kind) {
    static const char *const EFFECTS[] = {"still",  "gone", "clock",  "data", "error", "lost",
                                          "double", "down", "silent", "cut",  NULL};
    int effect = place_in(EFFECTS, kind), thread;
    const char *value, *whom = strtok(NULL, " ");
    event->kind = effect == NO_INDEX ? EVENT_LATE : EVENT_FAULT;
    if (effect != NO_INDEX) event->effect = (enum fault_effect)effect;
    if (!whom) fail("whom does it strike?");
    if (!strcmp(whom, "server")) event->client = ANY_SERVER;
    else read_caller(whom, &event->client, &thread);
    for (const char *word; (word = strtok(NULL, " "));) {
        if (!strcmp(word, "reply")) event->reply = true;
        else if (!strcmp(word, "until=never")) event->until_ns = LATE_FOR_EVER;
        else if ((value = value_of(word, "until"))) event->until_ns = ns_of(value);
        else fail("no part of a fault: %s", word);
    }
}

static void read_server(struct call_event *event, const char *kind) {
    const char *word = strtok(NULL, " "), *value;
    event->kind = !strcmp(kind, "lease") ? EVENT_LEASE : !strcmp(kind, "left") ? EVENT_LEFT : EVENT_EXECUTED;
    if (!word) fail("%s: of what?", kind);
    if (event->kind == EVENT_EXECUTED) {
        int thread;
        read_caller(word, &event->client, &thread);
    } else if (event->kind == EVENT_LEFT) snprintf(event->name, sizeof event->name, "%s", word);
    else if (!strcmp(word, "none")) event->remaining_ms = LEASE_NO_KEY;
    else if (!strcmp(word, "endless")) event->remaining_ms = LEASE_WITHOUT_END;
    else event->remaining_ms = number_of(word);
    while ((word = strtok(NULL, " "))) {
        if ((value = value_of(word, "node"))) event->node = (int)number_of(value);
        else if ((value = value_of(word, "resource"))) event->resource = (int)number_of(value);
        else if ((value = value_of(word, "longer")))
            event->longer_ms = strcmp(value, "endless") ? number_of(value) : LEASE_WITHOUT_END;
        else if (!strcmp(word, "makes")) event->makes = true;
        else fail("no part of what a server says: %s", word);
    }
}

static void read_event(char *line) {
    static const char *const VERBS[] = {"acquire", "release", "renew", "is_held", "cancel", "work", NULL};
    static const char *const OUTCOMES[] = {"unknown", "ok", "refused", NULL};
    static const char *const STRIKES[] = {"still",  "gone", "clock",  "data", "error", "lost",
                                          "double", "down", "silent", "cut",  "late",  NULL};
    static const char *const SERVERS[] = {"lease", "left", "executed", NULL};
    const char *at = strtok(line, " "), *first = strtok(NULL, " "), *second;
    if (count == EVENTS_MOST) fail("too many events");
    struct call_event *event = &events[count];
    *event = (struct call_event){.kind = EVENT_IDLE, .at_ns = ns_of(at)};
    lines[count] = line_number;
    open_call[count] = false;
    if (!first) fail("an event is missing");
    if (!strcmp(first, "idle")) event->kind = EVENT_IDLE;
    else if (!strcmp(first, "end")) event->kind = EVENT_END;
    else if (place_in(STRIKES, first) != NO_INDEX) read_strike(event, first);
    else if (place_in(SERVERS, first) != NO_INDEX) read_server(event, first);
    else if (!(second = strtok(NULL, " "))) fail("what does %s do?", first);
    else if (place_in(VERBS, second) != NO_INDEX) read_ask(event, first, place_in(VERBS, second));
    else if (!strcmp(second, "notice")) {
        read_ask(event, first, CALL_WORK);
        event->kind = EVENT_NOTICE;
        open_call[count] = false;
    } else if (place_in(OUTCOMES, second) != NO_INDEX) read_answer(event, first, place_in(OUTCOMES, second));
    else fail("no event: %s %s", first, second);
    if (count && event->at_ns < events[count - 1].at_ns) fail("time goes back");
    count++;
}

/* --- workloads --- */

static void judge(void) {
    struct promise_findings findings;
    const struct broken_promise *found = findings.broken;
    if (!promises_judge(&facts, events, count, &findings)) fail("there is no memory");
    for (int at = 0; at < findings.excused_count && shows_excuses; at++)
        printf("%d\texcused\t%d\t%d\t0\t0\t%s\n", workload, lines[findings.excused[at].event],
               lines[findings.excused[at].other], findings.excused[at].sentence);
    for (int at = 0; at < findings.broken_count; at++)
        printf("%d\t%s\t%d\t%d\t%lld\t%lld\t%s\n", workload, promise_name(found[at].promise), lines[found[at].event],
               lines[found[at].other], (long long)found[at].expected_ms, (long long)found[at].found_ms,
               found[at].sentence);
}

static void begin(void) {
    if (workload) judge();
    workload++;
    count = form_count = 0;
    facts = (struct library_facts){0};
}

int main(int count_of, char **words) {
    shows_excuses = count_of > 1 && !strcmp(words[1], "--excused");
    char line[LINE_SIZE];
    while (fgets(line, sizeof line, stdin)) {
        line_number++;
        line[strcspn(line, "\n")] = 0;
        if (!line[0] || line[0] == '#') continue;
        if (!strncmp(line, "broken ", 7) || !strncmp(line, "kept:", 5)) begin();
        else if (!workload) fail("a workload begins with \"kept:\" or \"broken PROMISE:\"");
        else if (!strncmp(line, "facts ", 6)) {
            strtok(line, " ");
            for (const char *word; (word = strtok(NULL, " "));) read_fact(word);
        } else read_event(line);
    }
    if (workload) judge();
    return 0;
}
