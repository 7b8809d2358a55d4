/* linearizable_each MODEL PERMITS LEASES RELEASE TIMEOUT FILE: the verdict of the linearizability checker on each
 * object of a file in any format, one a line: its name, and true or false.
 *
 * LEASES and TIMEOUT are 0 or 1, RELEASE is 0 to 2: the policies of `check --model`, in the order of
 * docs/linearizable.md. Exit status: 0; 2 bad usage or input, a limit was reached, or memory was not given back. */
#include <stdio.h>
#include <stdlib.h>

#include "checkers/formats/operations_read.h"

static bool judge_each(struct operations_file *file, struct linearizable_settings *settings) {
    struct operations *operations = &file->source.operations;
    settings->initial = file->source.initial;
    settings->leases = operations->policies.leases;
    for (size_t each = 0; each < operations->object_count; each++) {
        struct linearizable_result result;
        const struct concurrent_object *object = &operations->objects[each];
        linearizable_decide(object, (uint32_t)operations->process_count, settings, &file->source.limits, &result);
        if (result.status == VERDICT_INCONCLUSIVE)
            return fprintf(stderr, "%s: %s\n", object->name, result.fault), false;
        printf("%s %s\n", object->name ? object->name : "-", result.status == VERDICT_HOLDS ? "true" : "false");
    }
    return true;
}

int main(int argc, char **argv) {
    static struct operations_file file;
    struct history_error error = {.text = ""};
    struct linearizable_settings settings = {.permits = argc == 7 ? atoi(argv[2]) : 0};
    if (settings.permits < 1 || !model_find(argv[1], &settings.model))
        return fprintf(stderr, "usage: linearizable_each MODEL PERMITS LEASES RELEASE TIMEOUT FILE\n"), 2;
    struct read_settings reading = {
        .model = settings.model,
        .policies = {.leases = argv[3][0] == '1',
                     .failed_release = (enum release_reading)(argv[4][0] - '0'),
                     .timeout_not_happened = argv[5][0] == '1',
                     .owned = model_is_owned(settings.model),
                     .nests = settings.model == MODEL_REENTRANT_MUTEX || settings.model == MODEL_SEMAPHORE}};
    bool good = operations_read(&file, argv[6], &reading, &error);
    if (!good) fprintf(stderr, "%s\n", error.text);
    good = good && judge_each(&file, &settings);
    operations_file_end(&file);
    uint64_t left = file.source.limits.used;
    if (left) fprintf(stderr, "%llu bytes were not given back\n", (unsigned long long)left);
    return good && left == 0 ? 0 : 2;
}
