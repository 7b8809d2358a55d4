/* Whether the answers of a schedule are those of one number that requests read and change: there is an order of all of
 * them, each at some moment from when it was sent until it was answered, in which every answer is right
 * (checkers/linearizability, docs/linearizable.md).
 *
 * A request that was refused has changed nothing; one of unknown outcome at any moment since, or not at all. One that
 * adds, and says what is there then, is a compare-and-set; one that says nothing an add. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/linearizability/linearizable.h"
#include "harness/application/application.h"

/* What is kept in its way (MODEL_MEMORY) is the only limit, so that a verdict does not depend on the machine. */
enum { MODEL_MEMORY = 256 << 20, SHOWN_MOST = 4, PATH_MOST = 96 };
static const int64_t VALUE_LARGEST = INT64_C(1000000000000000);

/* --- what an answer says --- */

static bool answer_text_number(const char *text, int64_t *number) {
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text) return false;
    while (isspace((unsigned char)*end)) end++;
    if (*end != '\0' || value > VALUE_LARGEST || value < -VALUE_LARGEST) return false;
    *number = value;
    return true;
}

/* The number at a.b of an object; ANSWER_SILENT: no number is there. */
static int64_t field_number(const json_t *from, const char *path) {
    char key[PATH_MOST];
    int64_t number = ANSWER_SILENT;
    while (*path && from) {
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        from = json_object_get(from, key);
        path += length + (path[length] == '.');
    }
    if (json_is_string(from)) answer_text_number(json_string_value(from), &number);
    if (!json_is_integer(from)) return number;
    json_int_t value = json_integer_value(from);
    return value <= VALUE_LARGEST && value >= -VALUE_LARGEST ? value : ANSWER_SILENT;
}

static int64_t answer_number(const struct answer_model *model, const struct http_answer *answer) {
    json_error_t error;
    json_t *body = json_loadb(answer->body, answer->length, JSON_DECODE_ANY, &error);
    int64_t number = body ? field_number(body, model->field) : ANSWER_SILENT;
    json_decref(body);
    return number;
}

static bool model_reads_answer(const struct answer_model *model, const struct application *application,
                               const struct application_request *request) {
    enum model_effect effect = model->effects[request - application->requests];
    return effect == EFFECT_READ || effect == EFFECT_ADD;
}

void application_models_begin(struct application *application) {
    for (int each = 0; each < application->check_count; each++)
        for (int number = 0; number < APPLICATION_SENT; number++)
            application->checks[each].model.values[number] = ANSWER_SILENT;
}

void application_models_hear(struct application *application, int number, const struct http_answer *answer) {
    if (number < 1 || number > APPLICATION_SENT) return;
    for (int each = 0; each < application->check_count; each++) {
        struct application_check *check = &application->checks[each];
        if (check->kind == CHECK_MODEL) check->model.values[number - 1] = answer_number(&check->model, answer);
    }
}

bool application_models_try(struct library_world *world, const struct application_request *request,
                            const struct http_answer *answer) {
    struct application *application = application_of(world);
    for (int each = 0; each < application->check_count; each++) {
        struct answer_model *model = &application->checks[each].model;
        if (application->checks[each].kind != CHECK_MODEL || !model_reads_answer(model, application, request)) continue;
        model->has_value |= answer_number(model, answer) != ANSWER_SILENT;
        /* One that adds need not say what is there then, if others do. */
        bool is_last = request == &application->requests[application->request_count - 1];
        bool is_read = model->effects[request - application->requests] == EFFECT_READ;
        if (answer_number(model, answer) == ANSWER_SILENT && (is_read || (is_last && !model->has_value)))
            return application_is_wrong(
                world,
                "the check by the model %s: the answer of the request %s, alone, has no whole number%s%.60s: %.60s",
                model->name, request->name, model->field[0] ? " at " : "", model->field, answer->body);
    }
    return true;
}

/* --- the operations of a schedule --- */

struct answered_request {
    int number;   /* of the request in the schedule, from 1 */
    size_t event; /* the world's: it was answered, or else sent */
};

struct answer_history {
    struct operation list[APPLICATION_SENT];
    struct answered_request requests[APPLICATION_SENT];
    int64_t said[APPLICATION_SENT]; /* ANSWER_SILENT */
    size_t count;
    uint32_t clock;
};

/* Of a request that has an effect. Events of the world are at every second position. */
static struct operation operation_make(const struct answer_model *model, int effect_of, int number, size_t event) {
    struct operation operation = {.call = (uint32_t)(2 * event + 1),
                                  .end = OPERATION_OPEN,
                                  .called_at = (uint32_t)event,
                                  .returned_at = OPERATION_OPEN,
                                  .from = OPERATION_NIL,
                                  .outcome = OUTCOME_UNKNOWN};
    switch (model->effects[effect_of]) {
    case EFFECT_ADD:
        operation.kind = OPERATION_ADD;
        operation.value = model->amounts[effect_of];
        break;
    case EFFECT_WRITE:
        operation.kind = OPERATION_WRITE;
        operation.value = number;
        break;
    default: operation.kind = OPERATION_READ; break;
    }
    return operation;
}

static void operation_answered(struct answer_history *history, size_t at, enum outcome outcome, size_t event,
                               int64_t said) {
    struct operation *operation = &history->list[at];
    operation->outcome = (uint8_t)outcome;
    if (outcome != OUTCOME_OK) return;
    operation->end = (uint32_t)(2 * event + 1);
    operation->returned_at = (uint32_t)event;
    history->requests[at].event = event;
    if (operation->kind == OPERATION_WRITE) return;
    history->said[at] = said;
    if (operation->kind == OPERATION_READ) {
        operation->value = said;
        if (said == ANSWER_SILENT) operation->outcome = OUTCOME_REFUSED; /* it read, and says nothing */
    } else if (said != ANSWER_SILENT) {
        operation->from = said - operation->value;
        operation->kind = OPERATION_CAS;
        operation->value = said;
    }
}

static void history_make(const struct library_world *world, const struct answer_model *model,
                         struct answer_history *history) {
    const struct application *application = application_of(world);
    int number = 0;
    history->count = 0;
    history->clock = (uint32_t)(2 * world->event_count + 1);
    for (size_t each = 0; each < world->event_count && history->count < APPLICATION_SENT; each++) {
        const struct call_event *event = &world->events[each];
        if (event->asked.verb != CALL_REQUEST || !event->asked.form) continue;
        if (event->kind == EVENT_ASK) {
            int effect_of = (int)(application_request_named(application, event->asked.form) - application->requests);
            number++;
            if (model->effects[effect_of] == EFFECT_NONE) continue;
            history->said[history->count] = ANSWER_SILENT;
            history->requests[history->count] = (struct answered_request){number, each};
            history->list[history->count++] = operation_make(model, effect_of, number, each);
        } else if (event->kind == EVENT_ANSWER) {
            for (size_t at = 0; at < history->count; at++)
                if (history->list[at].called_at == event->call)
                    operation_answered(history, at, event->outcome, each,
                                       model->values[history->requests[at].number - 1]);
        }
    }
}

static enum verdict_status answers_decide(const struct answer_model *model, struct answer_history *history) {
    struct concurrent_object object = {.list = history->list, .count = history->count, .clock = history->clock};
    const struct linearizable_settings settings = {.model = MODEL_REGISTER, .initial = model->starts};
    struct limits limits;
    struct linearizable_result result;
    limits_begin(&limits, MODEL_MEMORY, 0);
    linearizable_decide(&object, 1, &settings, &limits, &result);
    return result.status;
}

/* --- which of them contradict each other --- */

/* Whether it is still violated with this operation instead. If not, it stays as it was. */
static bool is_needless(const struct answer_model *model, struct answer_history *history, size_t at,
                        struct operation weaker) {
    struct operation kept = history->list[at];
    history->list[at] = weaker;
    if (answers_decide(model, history) == VERDICT_VIOLATED) return true;
    history->list[at] = kept;
    return false;
}

/* Takes from the history what is not needed for the contradiction: each answer, then that a request took effect. */
static void history_reduce(const struct application *application, const struct library_world *world,
                           const struct answer_model *model, struct answer_history *history) {
    for (size_t at = history->count; at-- > 0;) {
        struct operation weaker = history->list[at];
        if (weaker.outcome != OUTCOME_OK) continue;
        const char *name = world->events[weaker.called_at].asked.form;
        if (weaker.kind == OPERATION_READ) weaker.outcome = OUTCOME_REFUSED;
        if (weaker.kind == OPERATION_CAS) {
            weaker.kind = OPERATION_ADD;
            weaker.from = OPERATION_NIL;
            weaker.value = model->amounts[application_request_named(application, name) - application->requests];
        }
        if (weaker.kind != OPERATION_WRITE) is_needless(model, history, at, weaker);
    }
    for (size_t at = history->count; at-- > 0;) {
        struct operation weaker = history->list[at];
        if (weaker.outcome != OUTCOME_OK || (weaker.kind != OPERATION_ADD && weaker.kind != OPERATION_WRITE)) continue;
        weaker.outcome = OUTCOME_UNKNOWN;
        weaker.end = OPERATION_OPEN;
        is_needless(model, history, at, weaker);
    }
}

/* "request 1 (consume) was answered 9, then request 2 (consume) was answered 9". */
static void history_write(const struct library_world *world, const struct answer_history *history, char *text,
                          size_t room, size_t *event) {
    const struct operation *before = NULL;
    size_t used = 0;
    int shown = 0, more = 0;
    for (size_t at = 0; at < history->count; at++) {
        const struct operation *operation = &history->list[at];
        char said[32] = " with success";
        if (operation->outcome != OUTCOME_OK) continue;
        *event = history->requests[at].event;
        if (shown++ >= SHOWN_MOST) {
            more++;
            continue;
        }
        if (history->said[at] != ANSWER_SILENT) snprintf(said, sizeof said, " %lld", (long long)history->said[at]);
        used += (size_t)snprintf(text + used, room - used, "%srequest %d (%.40s) was answered%s",
                                 !before                         ? ""
                                 : before->end < operation->call ? ", then "
                                                                 : ", and ",
                                 history->requests[at].number, world->events[operation->called_at].asked.form, said);
        before = operation;
    }
    if (more > 0) snprintf(text + used, room - used, ", and %d more", more);
}

bool application_model_judge(const struct library_world *world, const struct application_check *check,
                             char sentence[APPLICATION_SENTENCE], size_t *event) {
    static struct answer_history history;
    char contradiction[APPLICATION_SENTENCE - 128];
    const struct answer_model *model = &check->model;
    sentence[0] = '\0';
    history_make(world, model, &history);
    enum verdict_status status = answers_decide(model, &history);
    if (status != VERDICT_VIOLATED) return status == VERDICT_HOLDS;
    history_reduce(application_of(world), world, model, &history);
    history_write(world, &history, contradiction, sizeof contradiction, event);
    snprintf(sentence, APPLICATION_SENTENCE, "%s: no order explains this of a %.8s that begins with %lld",
             contradiction, model->name, (long long)model->starts);
    return true;
}
