/* A client: one process that hosts one lock and uses the resource. The driver gives it one step at a time through the
 * shared page. Worker and watchdog are in this one process, so stopping it stops both, as a garbage collection does.
 *
 * Exit status: 0 after STEP_EXIT, 2 bad arguments, 3 a node did not answer, 4 its adapter or its plug-in cannot be
 * used. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/client/live_client.h"
#include "harness/process/zygote_service.h"

int main(int argc, char **argv) {
    struct client_arguments arguments = {.task = -1, .permits = 1, .env = {.reply_limit_ms = 1000}};
    zygote_begin(&argc, &argv);
    if (!client_arguments_parse(argc, argv, &arguments)) return 2;
    struct history_error error = {.text = "unknown lock or task"};
    const struct lock_type *type = client_arguments_lock(&arguments);
    struct actor files;
    bool opens = actor_open(&files, 0, arguments.history, arguments.page, &error);
    if (!opens || !type || arguments.task < 0 || arguments.task > (int64_t)files.page->task_count - 2) {
        fprintf(stderr, "client: %s\n", error.text);
        return 2;
    }
    enum outcome opened = live_client_run(&arguments, type, &files, NULL);
    free(arguments.resource);
    actor_close(&files);
    return opened == OUTCOME_OK ? 0 : LIVE_CLIENT_NOT_OPENED;
}
