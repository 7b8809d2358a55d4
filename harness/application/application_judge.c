/* What a schedule of an application has come to: its checks, and whether each request was answered. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/application/application.h"
#include "harness/search/mix.h"
#include "harness/search/search.h"

/* Requests that poll each other's locks take some thousand steps until it is clear that they wait for ever. */
enum { APPLICATION_STEPS_MOST = 20000, ROWS_SHOWN = 3, ROW_TEXT = 96 };

/* --- requests --- */

struct request_counts request_counts_of(const struct library_world *world, const char *name) {
    struct request_counts counts = {0};
    for (size_t each = 0; each < world->event_count; each++) {
        const struct call_event *event = &world->events[each];
        const struct call *call = &event->asked;
        bool is_call = event->kind == EVENT_ASK || event->kind == EVENT_ANSWER;
        if (!is_call || call->verb != CALL_REQUEST || (name && strcmp(call->form, name) != 0)) continue;
        counts.asked += event->kind == EVENT_ASK;
        counts.ok += event->kind == EVENT_ANSWER && event->outcome == OUTCOME_OK;
        counts.refused += event->kind == EVENT_ANSWER && event->outcome == OUTCOME_REFUSED;
    }
    counts.unknown = counts.asked - counts.ok - counts.refused;
    return counts;
}

/* consume.ok is a range: of each request whose outcome is unknown it is not known whether it took effect. */
static bool counts_named(const void *asked, const char *name, struct range *range) {
    const struct library_world *world = asked;
    char request[RANGE_NAME];
    const char *dot = strchr(name, '.');
    if (!dot) return false;
    snprintf(request, sizeof request, "%.*s", (int)(dot - name), name);
    if (!application_request_named(application_of(world), request)) return false;
    struct request_counts counts = request_counts_of(world, request);
    if (strcmp(dot, ".asked") == 0) *range = (struct range){counts.asked, counts.asked};
    else if (strcmp(dot, ".ok") == 0) *range = (struct range){counts.ok, counts.ok + counts.unknown};
    else if (strcmp(dot, ".refused") == 0) *range = (struct range){counts.refused, counts.refused + counts.unknown};
    else if (strcmp(dot, ".unknown") == 0) *range = (struct range){counts.unknown, counts.unknown};
    else return false;
    return true;
}

/* --- checks --- */

struct rows {
    int count;
    bool has_value;
    char first[SERVER_VALUE]; /* the first value of the first row */
    char shown[ROW_TEXT * ROWS_SHOWN];
};

static void rows_take(void *hearer, const char *const *values, int count) {
    struct rows *rows = hearer;
    size_t used = strlen(rows->shown);
    if (rows->count == 0 && count > 0) {
        rows->has_value = values[0] != NULL;
        snprintf(rows->first, sizeof rows->first, "%s", values[0] ? values[0] : "");
    }
    if (rows->count++ >= ROWS_SHOWN) return;
    used += (size_t)snprintf(rows->shown + used, sizeof rows->shown - used, "%s(", used ? ", " : "");
    for (int each = 0; each < count && used < sizeof rows->shown; each++)
        used += (size_t)snprintf(rows->shown + used, sizeof rows->shown - used, "%s%.24s", each ? ", " : "",
                                 values[each] ? values[each] : "null");
    if (used < sizeof rows->shown) snprintf(rows->shown + used, sizeof rows->shown - used, ")");
}

static void range_write(struct range range, char text[48]) {
    if (range.low == range.high) snprintf(text, 48, "%lld", (long long)range.low);
    else snprintf(text, 48, "%lld to %lld", (long long)range.low, (long long)range.high);
}

/* "consume: 2 ok, 1 unknown" for each request that was sent. */
static void counts_write(const struct library_world *world, char *text, size_t room) {
    const struct application *application = application_of(world);
    size_t used = 0;
    text[0] = '\0';
    for (int each = 0; each < application->request_count && used + 1 < room; each++) {
        struct request_counts counts = request_counts_of(world, application->requests[each].name);
        if (counts.asked == 0) continue;
        used += (size_t)snprintf(text + used, room - used, "%s%.40s: %d ok", used ? "; " : "",
                                 application->requests[each].name, counts.ok);
        if (counts.refused > 0 && used + 1 < room)
            used += (size_t)snprintf(text + used, room - used, ", %d refused", counts.refused);
        if (counts.unknown > 0 && used + 1 < room)
            used += (size_t)snprintf(text + used, room - used, ", %d unknown", counts.unknown);
    }
}

static bool is_within(enum check_kind kind, int64_t value, struct range range) {
    return (kind == CHECK_MOST || value >= range.low) && (kind == CHECK_LEAST || value <= range.high);
}

static const char *const BOUNDS[] = {[CHECK_EQUALS] = "", [CHECK_LEAST] = "at least ", [CHECK_MOST] = "at most "};

/* Of a check with an expression. False: with the world's reason. */
static bool value_check(struct library_world *world, const struct application_check *check, const struct rows *rows,
                        char sentence[APPLICATION_SENTENCE]) {
    char reason[RANGE_REASON], expected[48], counts[96], *end;
    struct range range;
    if (!range_evaluate(check->right, counts_named, world, &range, reason))
        return application_is_wrong(world, "the check of '%.60s': %s", check->text, reason);
    long long value = strtoll(rows->first, &end, 10);
    bool is_number = rows->count == 1 && rows->has_value && end > rows->first && *end == '\0';
    if (is_number && is_within(check->kind, value, range)) return true;
    range_write(range, expected);
    counts_write(world, counts, sizeof counts);
    snprintf(sentence, APPLICATION_SENTENCE, "'%.70s' is %.60s, and %.60s = %s%s was right%s%s%s", check->text,
             is_number     ? rows->first
             : rows->count ? rows->shown
                           : "nothing",
             check->right, BOUNDS[check->kind], expected, counts[0] ? " (" : "", counts, counts[0] ? ")" : "");
    return true;
}

static bool check_ask(struct library_world *world, const struct application_check *check,
                      char sentence[APPLICATION_SENTENCE]) {
    struct library_server *server = &world->servers[check->node];
    struct rows rows = {0};
    char reason[SERVER_REASON];
    sentence[0] = '\0';
    if (!server->kind->ask(server, check->text, rows_take, &rows, reason))
        return application_is_wrong(world, "the check '%.60s': %.100s", check->text, reason);
    if (check->kind == CHECK_EMPTY) {
        if (rows.count > 0)
            snprintf(sentence, APPLICATION_SENTENCE, "'%.70s' has %d row%s, and none was right: %.100s", check->text,
                     rows.count, rows.count > 1 ? "s" : "", rows.shown);
        return true;
    }
    if (check->kind != CHECK_TEXT) return value_check(world, check, &rows, sentence);
    if (rows.count != 1 || strcmp(rows.first, check->right) != 0)
        snprintf(sentence, APPLICATION_SENTENCE, "'%.70s' is %.60s, and '%.60s' was right", check->text,
                 rows.count == 1 ? rows.first
                 : rows.count    ? rows.shown
                                 : "nothing",
                 check->right);
    return true;
}

static void finding_add(struct application *application, int property, const char *sentence, size_t event) {
    struct application_findings *found = &application->last;
    if (found->count == APPLICATION_FINDINGS) return;
    found->of[found->count].property = property;
    found->of[found->count].event = event;
    found->of[found->count].access = SIZE_MAX;
    snprintf(found->of[found->count++].sentence, APPLICATION_SENTENCE, "%s", sentence);
}

bool application_checks_ask(struct library_world *world) {
    struct application *application = application_of(world);
    char sentence[APPLICATION_SENTENCE];
    application->last.count = 0;
    application->undecided = NULL;
    for (int each = 0; each < application->check_count; each++) {
        const struct application_check *check = &application->checks[each];
        size_t event = world->event_count - 1;
        bool is_model = check->kind == CHECK_MODEL;
        if (is_model && !application_model_judge(world, check, sentence, &event))
            application->undecided = "the answers of its requests were too many to judge them by a model";
        else if (!is_model && !check_ask(world, check, sentence)) return false;
        if (sentence[0]) finding_add(application, APPLICATION_CHECK, sentence, event);
    }
    return true;
}

/* --- a schedule --- */

static const char *unanswered(const struct library_world *world) {
    for (int client = 0; client < world->workload.clients; client++)
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++) {
            const struct library_thread *state = &world->clients[client].threads[thread];
            if (world->clients[client].runs && state->asked) return world->events[state->ask].asked.form;
        }
    return NULL;
}

static void findings_take(const struct application_findings *found, const struct search_settings *settings,
                          struct search_outcome *outcome) {
    for (int each = found->count - 1; each >= 0; each--) {
        int property = found->of[each].property;
        const char *sentence = found->of[each].sentence;
        for (const char *at = sentence; *at; at++) outcome->digest = mix(outcome->digest, (uint64_t)*at);
        outcome->status[property] = VERDICT_VIOLATED;
        outcome->sorts[property] = 1;
        if (settings->required[property]) snprintf(outcome->sentence, sizeof outcome->sentence, "%.255s", sentence);
    }
}

static bool any_fault(const struct library_world *world) {
    for (size_t each = 0; each < world->event_count; each++)
        if (world->events[each].kind == EVENT_FAULT || world->events[each].kind == EVENT_LATE) return true;
    return false;
}

/* What the rules say of the schedule. */
static void rules_add(struct library_world *world) {
    static struct rule_findings broken;
    struct application *application = application_of(world);
    application->wire.record.is_struck = any_fault(world);
    application_rules_judge(&application->wire.record, &broken);
    for (int each = 0; each < broken.count; each++) {
        size_t event = application->wire.places[broken.of[each].event];
        if (event >= world->event_count) event = world->event_count - 1;
        finding_add(application, APPLICATION_RULE + (int)broken.of[each].rule, broken.of[each].sentence, event);
        application->last.of[application->last.count - 1].access = broken.of[each].event;
    }
}

/* Why nothing can be said of a schedule; NULL: something can. */
static const char *nothing_measured(const struct library_world *world, const char *waits) {
    if (request_counts_of(world, NULL).ok == 0) return "no request was answered with a status below 400";
    if (application_of(world)->wire.executed == 0) return "no instance asked its servers anything";
    if (waits && !world->stopped) return "it was cut short while a request was not answered: it has too many steps";
    return application_of(world)->undecided;
}

void application_judge(struct library_world *world, const struct search_settings *settings,
                       struct search_outcome *outcome) {
    struct application *application = application_of(world);
    char sentence[APPLICATION_SENTENCE];
    if (!application_checks_ask(world)) return;
    const char *waits = unanswered(world), *nothing = nothing_measured(world, waits);
    if (waits && world->stopped) {
        snprintf(sentence, sizeof sentence, "the request %.60s was not answered, although everything had arrived",
                 waits);
        finding_add(application, APPLICATION_ANSWER, sentence, world->event_count - 1);
    }
    rules_add(world);
    for (int property = 0; property < APPLICATION_PROPERTIES; property++) {
        outcome->applies[property] = true;
        outcome->status[property] = nothing ? VERDICT_INCONCLUSIVE : VERDICT_HOLDS;
    }
    if (nothing) snprintf(outcome->inapplicable_reason, sizeof outcome->inapplicable_reason, "%s", nothing);
    findings_take(&application->last, settings, outcome);
}

void application_keep(struct library_world *world) {
    application_of(world)->kept = application_of(world)->last;
}

/* --- as JSON --- */

void application_describe(const struct library_world *world, bool kept, json_t *result) {
    const struct application *application = application_of(world);
    const struct application_findings *found = kept ? &application->kept : &application->last;
    json_t *evidence = json_array();
    for (int each = 0; each < found->count; each++) {
        json_int_t event = (json_int_t)found->of[each].event;
        json_t *one =
            json_pack("{s:s,s:s,s:I,s:I}", "promise", APPLICATION_PROTOCOL.property_name(found->of[each].property),
                      "sentence", found->of[each].sentence, "event", event, "other", event);
        if (found->of[each].access != SIZE_MAX)
            json_object_set_new(one, "access", json_integer((json_int_t)found->of[each].access));
        json_array_append_new(evidence, one);
    }
    json_object_set_new(result, "evidence", evidence);
    json_object_set_new(result, "excused", json_array());
    if (!kept) json_object_set_new(result, "accesses", application_wire_json(&application->wire));
}

static void application_introduce(const struct library_world *world, json_t *result) {
    const struct rule_findings *warnings = &application_of(world)->warnings;
    json_t *all = json_array();
    for (int each = 0; each < warnings->count; each++)
        json_array_append_new(all, json_pack("{s:s,s:s}", "rule", application_rule_name((int)warnings->of[each].rule),
                                             "sentence", warnings->of[each].sentence));
    json_object_set_new(result, "warnings", all);
    if (application_of(world)->alone) json_object_set(result, "alone", application_of(world)->alone);
}

static const char *application_property_name(int property) {
    static const char *const NAMES[APPLICATION_RULE] = {"check", "answer"};
    return property < APPLICATION_RULE ? NAMES[property] : application_rule_name(property - APPLICATION_RULE);
}

static const char *application_program(const struct library_world *world, int client) {
    return application_of(world)->starts[client];
}

/* Its instances say nothing of themselves: the file does. */
static bool application_offer(struct library_world *world) {
    const struct application *application = application_of(world);
    struct library_offer *offer = &world->offer;
    *offer = (struct library_offer){.is_tcp = true, .threads = WORKLOAD_THREADS};
    snprintf(offer->name, sizeof offer->name, "%s", application->name);
    struct application *of = application_of(world);
    application_wire_open(&of->wire, world, of->hints, of->hint_count);
    return true;
}

/* Exchanges first: nearly all mistakes around a lock need one other request at one moment. The usual course finds what
 * timers bring about. Six of the fourteen turns have faults, one of them rare kinds: new instances take longer than
 * schedules.
 */
static const struct portfolio_turn EXCHANGES[] = {
    {STRATEGY_EXCHANGE, FAULTS_NONE, false}, {STRATEGY_EXCHANGE, FAULTS_NONE, false},
    {STRATEGY_UNIFORM, FAULTS_NONE, false},  {STRATEGY_EXCHANGE, FAULTS_SOME, true},
    {STRATEGY_PCT, FAULTS_NONE, false},      {STRATEGY_UNIFORM, FAULTS_SOME, true},
    {STRATEGY_EXCHANGE, FAULTS_NONE, false}, {STRATEGY_USUAL, FAULTS_SOME, true},
    {STRATEGY_UNIFORM, FAULTS_NONE, false},  {STRATEGY_PCT, FAULTS_SOME, false},
    {STRATEGY_EXCHANGE, FAULTS_SOME, false}, {STRATEGY_USUAL, FAULTS_NONE, false},
    {STRATEGY_EXCHANGE, FAULTS_NONE, false}, {STRATEGY_UNIFORM, FAULTS_RARE, false},
};

const struct hosted_protocol APPLICATION_PROTOCOL = {
    .program_title = "instance ",
    .property_count = APPLICATION_PROPERTIES,
    .property_name = application_property_name,
    .program = application_program,
    .offer = application_offer,
    .connect = application_connect,
    .lasting = application_lasting,
    .begin = application_begin,
    .begun = application_begun,
    .forget = application_forget,
    .empty = application_empty,
    .draw = application_draw,
    .ask = application_ask,
    .hear = application_hear,
    .judge = application_judge,
    .introduce = application_introduce,
    .keep = application_keep,
    .describe = application_describe,
    .portfolio = EXCHANGES,
    .portfolio_turns = sizeof EXCHANGES / sizeof EXCHANGES[0],
    .usual_courses = 1,
    .steps_most = APPLICATION_STEPS_MOST,
    .acts_between = true,
};
