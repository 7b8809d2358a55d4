#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "harness/application/application.h"

/* {"name": text, "ready": target or "", "lasts_ms": N, "timers_ms": N,
 *  "instances": [{"start": path, "port": N}],
 *  "requests": [{"name", "times", "method", "target", "head", "body"} or {"name", "times", "node", "text"} or
 *               {"name", "times", "start": path}],
 *  "checks": [{"kind": "equals|least|most|text|empty", "node": N, "text": ..., "right": ...} or
 *             {"kind": "model", "name": ..., "starts": N, "field": ...,
 *              "effects": [{"request": ..., "effect": "reads|adds|writes", "amount": N}]}],
 *  "reset": [{"node": N, "text": ...}],
 *  "locks": [{"kind": "key|list|no-key|script|table", "pattern": ..., "action": "acquires|releases|extends|harmless",
 *             "owner": N, "lease": N}]}
 *
 * Nodes count from 0. What a user writes (lockstorm-app.toml) was checked before; here only what could do harm is. */

enum { MODEL_NUMBER_MOST = 1000000000 }; /* as expressions have it */

struct file_reader {
    char *reason;
    bool good;
};

enum { LASTS_MOST_MS = 600000, TIMERS_MOST_MS = 600000 };

static const char *const CHECKS[] = {"equals", "least", "most", "text", "empty", "model", NULL};
static const char *const EFFECTS[] = {"none", "reads", "adds", "writes", NULL};

static void file_is_wrong(struct file_reader *reader, const char *what) {
    if (reader->good) snprintf(reader->reason, SEARCH_REASON, "the application's file: %s", what);
    reader->good = false;
}

static const char *file_text(struct file_reader *reader, const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text) file_is_wrong(reader, key);
    return text ? text : "";
}

static int file_number(struct file_reader *reader, const json_t *object, const char *key, int least, int most) {
    const json_t *number = json_object_get(object, key);
    json_int_t value = json_integer_value(number);
    if (json_is_integer(number) && value >= least && value <= most) return (int)value;
    file_is_wrong(reader, key);
    return least;
}

/* NULL: there is no such list, or it has more than `most` elements. */
static const json_t *file_list(struct file_reader *reader, const json_t *object, const char *key, size_t most) {
    const json_t *list = json_object_get(object, key);
    if (!json_is_array(list) || json_array_size(list) > most) file_is_wrong(reader, key);
    return reader->good ? list : NULL;
}

static bool is_name(const char *name) {
    for (const char *at = name; *at; at++)
        if (!(islower((unsigned char)*at) || *at == '_' || (at > name && isdigit((unsigned char)*at)))) return false;
    return name[0] != '\0' && strlen(name) < WORKLOAD_FORM;
}

static void request_read(struct file_reader *reader, const json_t *from, struct application_request *request) {
    request->name = file_text(reader, from, "name");
    if (!is_name(request->name)) file_is_wrong(reader, "a request's name");
    request->times = file_number(reader, from, "times", 1, WORKLOAD_CALLS);
    if (json_object_get(from, "start")) {
        request->way = REQUEST_COMMAND;
        request->text = file_text(reader, from, "start");
        return;
    }
    if (json_object_get(from, "node")) {
        request->way = REQUEST_SERVER;
        request->node = file_number(reader, from, "node", 0, LIBRARY_NODES - 1);
        request->text = file_text(reader, from, "text");
        return;
    }
    request->method = file_text(reader, from, "method");
    request->target = file_text(reader, from, "target");
    request->head = file_text(reader, from, "head");
    request->body = file_text(reader, from, "body");
}

static void model_read(struct file_reader *reader, const json_t *from, const struct application *application,
                       struct answer_model *model) {
    const json_t *each;
    size_t at;
    model->name = file_text(reader, from, "name");
    model->starts = file_number(reader, from, "starts", -MODEL_NUMBER_MOST, MODEL_NUMBER_MOST);
    model->field = file_text(reader, from, "field");
    json_array_foreach(file_list(reader, from, "effects", APPLICATION_REQUESTS), at, each) {
        const struct application_request *request =
            application_request_named(application, file_text(reader, each, "request"));
        int effect = call_word_find(EFFECTS, file_text(reader, each, "effect"));
        if (!request || effect < 0) {
            file_is_wrong(reader, "an effect of a model");
            return;
        }
        model->effects[request - application->requests] = (enum model_effect)effect;
        model->amounts[request - application->requests] =
            file_number(reader, each, "amount", -MODEL_NUMBER_MOST, MODEL_NUMBER_MOST);
    }
}

static void check_read(struct file_reader *reader, const json_t *from, const struct application *application,
                       struct application_check *check) {
    int kind = call_word_find(CHECKS, file_text(reader, from, "kind"));
    if (kind < 0) file_is_wrong(reader, "a check's kind");
    check->kind = (enum check_kind)(kind < 0 ? 0 : kind);
    if (check->kind == CHECK_MODEL) {
        model_read(reader, from, application, &check->model);
        return;
    }
    check->node = file_number(reader, from, "node", 0, LIBRARY_NODES - 1);
    check->text = file_text(reader, from, "text");
    check->right = file_text(reader, from, "right");
}

static const char *const HINTS[] = {"key", "list", "no-key", "script", "table", NULL};
static const char *const ACTIONS[] = {"acquires", "releases", "extends", "harmless", NULL};

static void hint_read(struct file_reader *reader, const json_t *from, struct lock_hint *hint) {
    int kind = call_word_find(HINTS, file_text(reader, from, "kind"));
    int action = call_word_find(ACTIONS, file_text(reader, from, "action"));
    if (kind < 0 || action < 0) file_is_wrong(reader, "a lock's kind or action");
    *hint = (struct lock_hint){.kind = (enum lock_hint_kind)(kind < 0 ? 0 : kind),
                               .pattern = file_text(reader, from, "pattern"),
                               .action = (enum lock_hint_action)(action < 0 ? 0 : action),
                               .owner_argument = file_number(reader, from, "owner", 0, 100),
                               .lease_argument = file_number(reader, from, "lease", 0, 100)};
}

static void lists_read(struct file_reader *reader, struct application *application) {
    const json_t *document = application->document, *each;
    size_t at;
    json_array_foreach(file_list(reader, document, "instances", LIBRARY_CLIENTS), at, each) {
        application->starts[at] = file_text(reader, each, "start");
        application->ports[at] = file_number(reader, each, "port", 1, UINT16_MAX);
        application->instances++;
    }
    json_array_foreach(file_list(reader, document, "requests", APPLICATION_REQUESTS), at, each) {
        request_read(reader, each, &application->requests[at]);
        if (application->requests[at].way == REQUEST_COMMAND) application->jobs += application->requests[at].times;
        application->request_count++;
    }
    json_array_foreach(file_list(reader, document, "checks", APPLICATION_CHECKS), at, each) {
        check_read(reader, each, application, &application->checks[at]);
        application->check_count++;
    }
    json_array_foreach(file_list(reader, document, "reset", APPLICATION_RESETS), at, each) {
        struct application_reset *reset = &application->resets[application->reset_count++];
        reset->node = file_number(reader, each, "node", 0, LIBRARY_NODES - 1);
        reset->text = file_text(reader, each, "text");
    }
    json_array_foreach(file_list(reader, document, "locks", APPLICATION_HINTS), at, each)
        hint_read(reader, each, &application->hints[application->hint_count++]);
}

bool application_read(struct application *application, const char *path, char *reason) {
    json_error_t error;
    struct file_reader reader = {reason, true};
    memset(application, 0, sizeof *application);
    application->document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    for (int client = 0; client < LIBRARY_CLIENTS; client++) {
        application->control[client] = HTTP_NONE;
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++) application->exchanges[client][thread] = HTTP_NONE;
    }
    if (!application->document) {
        snprintf(reason, SEARCH_REASON, "%s: %s", path, error.text);
        return false;
    }
    application->name = file_text(&reader, application->document, "name");
    application->ready = file_text(&reader, application->document, "ready");
    application->lasts_ms = file_number(&reader, application->document, "lasts_ms", 0, LASTS_MOST_MS);
    application->timers_ms = file_number(&reader, application->document, "timers_ms", 0, TIMERS_MOST_MS);
    lists_read(&reader, application);
    if (application->jobs > LIBRARY_CLIENTS - application->instances)
        application->jobs = LIBRARY_CLIENTS - application->instances;
    if (application->instances == 0 || application->request_count == 0) file_is_wrong(&reader, "instances or requests");
    return reader.good;
}

void application_free(struct application *application) {
    for (int client = 0; client < LIBRARY_CLIENTS; client++) {
        http_exchange_close(&application->control[client]);
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
            http_exchange_close(&application->exchanges[client][thread]);
    }
    if (application->wire.world) application_wire_close(&application->wire);
    json_decref(application->alone);
    json_decref(application->document);
    memset(application, 0, sizeof *application);
}

const struct application_request *application_request_named(const struct application *application, const char *name) {
    for (int each = 0; each < application->request_count; each++)
        if (strcmp(application->requests[each].name, name) == 0) return &application->requests[each];
    return NULL;
}
