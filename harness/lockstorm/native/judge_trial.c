#include "harness/lockstorm/native/judge_trial.h"

#include <stdlib.h>
#include <string.h>

#include "checkers/commands/render.h"

static char *verdict_of(struct history_reader *reader, const char *path, const struct demand *demand,
                        struct history_error *error) {
    const struct policy usual = {RELEASE_RELEASED, ACQUIRE_NOT_HAPPENED};
    struct readings *readings = calloc(1, sizeof *readings);
    char *text = NULL;
    int status;
    if (!readings) abort();
    if (readings_judge(readings, reader, usual)) {
        json_t *verdict = render_verdict(readings, demand, usual, false, &status);
        text = json_dumps(verdict, JSON_COMPACT | JSON_ENSURE_ASCII);
        json_decref(verdict);
    } else {
        history_fail_damaged(error, path, readings->first.damaged);
    }
    judge_close(&readings->first);
    free(readings);
    return text;
}

char *trial_verdict(const char *path, const char *require, struct history_error *error) {
    struct demand demand = {0};
    char *list = strdup(require ? require : "");
    if (!list) abort();
    bool known = demand_parse(&demand, list, error);
    struct history_reader *reader = known ? history_reader_open(path, error) : NULL;
    char *text = reader ? verdict_of(reader, path, &demand, error) : NULL;
    history_reader_close(reader);
    free(list);
    return text;
}
