#include "checkers/commands/render.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool demand_parse(struct demand *demand, char *list, struct history_error *error) {
    char *rest = NULL;
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        int found = -1;
        for (char *letter = word; *letter; letter++) *letter = *letter == '-' ? '_' : *letter;
        for (int each = 0; CHECKER_TABLE[each]; each++)
            if (strcmp(word, CHECKER_TABLE[each]->property) == 0) found = each;
        if (found < 0) return history_fail(error, "--require: no property is called %s", word);
        demand->required[found] = true;
        demand->chosen = true;
    }
    return true;
}

/* The verdicts under one policy, and which of them count. */
struct result {
    int checkers;
    struct verdict verdict[CHECKERS_MOST];
    bool required[CHECKERS_MOST];
};

static void result_make(struct result *result, const struct readings *readings, const struct demand *demand,
                        struct policy policy) {
    result->checkers = readings->first.checkers;
    for (int each = 0; each < result->checkers; each++) {
        struct verdict *verdict = &result->verdict[each];
        policy_verdict(readings, policy, each, verdict);
        result->required[each] =
            demand->chosen ? demand->required[each] : verdict->applies && !CHECKER_TABLE[each]->advisory;
    }
}

static int exit_status(const struct result *result) {
    int status = EXIT_HOLDS;
    for (int each = 0; each < result->checkers; each++) {
        if (!result->required[each]) continue;
        if (result->verdict[each].status == VERDICT_VIOLATED) return EXIT_VIOLATED;
        if (result->verdict[each].status == VERDICT_INCONCLUSIVE) status = EXIT_INCONCLUSIVE;
    }
    return status;
}

/* --- one property --- */

static json_t *evidence_json(const struct verdict *verdict) {
    json_t *list = json_array();
    for (int each = 0; each < verdict->evidence_count; each++) {
        const struct evidence *cause = &verdict->evidence[each];
        json_t *records = json_array();
        for (int record = 0; record < cause->record_count; record++)
            json_array_append_new(records, json_integer((json_int_t)cause->records[record]));
        json_array_append_new(list, json_pack("{s:s,s:I,s:o}", "text", cause->text, "count", (json_int_t)cause->count,
                                              "records", records));
    }
    return list;
}

static json_t *sorts_json(const struct checker *checker, const struct verdict *verdict) {
    json_t *counts = json_object();
    for (int sort = 0; checker->sorts[sort]; sort++) {
        char key[64];
        snprintf(key, sizeof key, "%s", checker->sorts[sort]);
        for (char *blank; (blank = strpbrk(key, " -"));) *blank = '_';
        json_object_set_new(counts, key, json_integer((json_int_t)verdict->sorts[sort]));
    }
    return counts;
}

static json_t *property_json(const struct checker *checker, const struct verdict *verdict) {
    json_t *rendered = json_pack("{s:s,s:I,s:o}", "status", verdict_status_name(verdict->status), "count",
                                 (json_int_t)verdict->count, "evidence", evidence_json(verdict));
    if (checker->sorts[0]) json_object_set_new(rendered, "sorts", sorts_json(checker, verdict));
    if (verdict->stopped) json_object_set_new(rendered, "fenced", json_integer((json_int_t)verdict->stopped));
    json_t *measures = json_object();
    for (int each = 0; each < VERDICT_MEASURES && verdict->measures[each].name; each++) {
        double value = verdict->measures[each].value;
        bool whole = value == floor(value);
        json_object_set_new(measures, verdict->measures[each].name,
                            whole ? json_integer((json_int_t)value) : json_real(value));
    }
    if (json_object_size(measures)) json_object_set(rendered, "measures", measures);
    json_decref(measures);
    if (verdict->status == VERDICT_INCONCLUSIVE) json_object_set_new(rendered, "reason", json_string(verdict->reason));
    return rendered;
}

/* --- the sentence --- */

/* "integrity violated (1 stale write, 9 lost updates)" */
static void add_property(FILE *sentence, const struct checker *checker, const struct verdict *verdict) {
    const char *before = " (";
    for (const char *letter = checker->property; *letter; letter++) fputc(*letter == '_' ? ' ' : *letter, sentence);
    fprintf(sentence, " %s", verdict_status_name(verdict->status));
    for (int sort = 0; checker->sorts[sort]; sort++) {
        unsigned long long count = verdict->sorts[sort];
        if (!count) continue;
        bool hisses = checker->sorts[sort][strlen(checker->sorts[sort]) - 1] == 's';
        fprintf(sentence, "%s%llu %s%s", before, count, checker->sorts[sort], count == 1 ? "" : hisses ? "es" : "s");
        before = ", ";
    }
    if (*before == ',') fprintf(sentence, ")");
    else if (verdict->stopped && strcmp(checker->property, "integrity") == 0)
        fprintf(sentence, " (%llu stale write%s fenced)", (unsigned long long)verdict->stopped,
                verdict->stopped == 1 ? "" : "s");
}

/* "Mutual exclusion violated, integrity holds (1 stale write fenced), fencing holds; besides, ownership violated (1
 * foreign release)": what counts, then what else was seen. What is not asked of the lock, as integrity of one with
 * several permits, is no part of it. */
static json_t *render_sentence_json(const struct result *result) {
    char *text;
    size_t length;
    FILE *sentence = open_memstream(&text, &length);
    if (!sentence) abort();
    const char *before = "";
    for (int besides = 0; besides <= 1; besides++) {
        for (int each = 0; each < result->checkers; each++) {
            const struct checker *checker = CHECKER_TABLE[each];
            const struct verdict *verdict = &result->verdict[each];
            bool counts = result->required[each] || (verdict->applies && !checker->advisory);
            bool is_seen_besides = !counts && checker->advisory && verdict->status == VERDICT_VIOLATED;
            if (besides ? !is_seen_besides : !counts) continue;
            fputs(before, sentence);
            add_property(sentence, checker, verdict);
            before = ", ";
        }
        before = "; besides, "; /* something came before it: mutual exclusion always counts */
    }
    if (fclose(sentence)) abort();
    text[0] = (char)toupper(text[0]);
    json_t *rendered = json_string(text);
    free(text);
    return rendered;
}

/* --- the whole --- */

static json_t *render_faults_json(const struct judgement *judgement) {
    json_t *list = json_array();
    char name[64], target[64];
    for (size_t each = 0; each < judgement->assumptions.faults.count; each++) {
        const struct recorded_fault *fault =
            (const struct recorded_fault *)judgement->assumptions.faults.entries + each;
        json_array_append_new(
            list,
            json_pack("{s:s,s:s,s:b}", "name", history_name(judgement->check.reader, fault->name, name, sizeof name),
                      "target", history_name(judgement->check.reader, (uint32_t)fault->target, target, sizeof target),
                      "proved", fault->proved));
    }
    return list;
}

static json_t *parameters_json(const struct judgement *judgement) {
    json_t *object = json_object();
    char key[128], value[1024];
    for (size_t each = 0; each < judgement->parameters.count; each++) {
        const struct recorded_parameter *parameter =
            (const struct recorded_parameter *)judgement->parameters.entries + each;
        history_name(judgement->check.reader, parameter->name, key, sizeof key);
        json_object_set_new(
            object, key,
            parameter->is_text
                ? json_string(history_name(judgement->check.reader, (uint32_t)parameter->value, value, sizeof value))
                : json_integer(parameter->value));
    }
    return object;
}

static json_t *policy_json(struct policy policy) {
    return json_pack("{s:s,s:s}", "release", RELEASE_POLICY[policy.release], "acquire_timeout",
                     ACQUIRE_POLICY[policy.acquire]);
}

/* The verdict under one policy, in short. */
static json_t *short_json(const struct readings *readings, const struct demand *demand, struct policy policy) {
    static struct result result;
    result_make(&result, readings, demand, policy);
    json_t *verdict = json_object();
    for (int each = 0; each < result.checkers; each++)
        json_object_set_new(verdict, CHECKER_TABLE[each]->property,
                            json_pack("{s:s,s:I}", "status", verdict_status_name(result.verdict[each].status), "count",
                                      (json_int_t)result.verdict[each].count));
    return json_pack("{s:o,s:o,s:o,s:i}", "policy", policy_json(policy), "verdict", verdict, "sentence",
                     render_sentence_json(&result), "exit", exit_status(&result));
}

static json_t *policies_json(const struct readings *readings, const struct demand *demand) {
    json_t *list = json_array();
    for (int release = 0; release < RELEASE_POLICIES; release++)
        for (int acquire = 0; acquire < ACQUIRE_POLICIES; acquire++)
            json_array_append_new(
                list, short_json(readings, demand,
                                 (struct policy){(enum release_policy)release, (enum acquire_policy)acquire}));
    return list;
}

json_t *render_verdict(const struct readings *readings, const struct demand *demand, struct policy policy, bool all,
                       int *status) {
    static struct result result;
    const struct judgement *judgement = &readings->first;
    json_t *verdict = json_object(), *required = json_array();
    result_make(&result, readings, demand, policy);
    *status = exit_status(&result);
    for (int each = 0; each < result.checkers; each++) {
        const char *property = CHECKER_TABLE[each]->property;
        json_object_set_new(verdict, property, property_json(CHECKER_TABLE[each], &result.verdict[each]));
        if (result.required[each]) json_array_append_new(required, json_string(property));
    }
    json_t *rendered =
        json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:i}", "verdict", verdict, "sentence",
                  render_sentence_json(&result), "required", required, "policy", policy_json(policy), "faults",
                  render_faults_json(judgement), "records", (json_int_t)judgement->assumptions.records, "torn",
                  (json_int_t)judgement->assumptions.torn, "dropped", (json_int_t)judgement->assumptions.dropped,
                  "grants", (json_int_t)judgement->check.granted, "failed_releases",
                  (json_int_t)judgement->failed_releases, "unknown_acquires", (json_int_t)judgement->check.timed_out,
                  "parameters", parameters_json(judgement), "exit", *status);
    if (judgement->inapplicable_reason[0])
        json_object_set_new(rendered, "unfit", json_string(judgement->inapplicable_reason));
    if (all) json_object_set_new(rendered, "policies", policies_json(readings, demand));
    return rendered;
}
