/* explore OPTIONS: searches schedules of one lock, or of one library, on running servers, or replays one schedule.
 * ROWS in explore_options.c describes the options.
 *
 * Numbers of schedules count from 0. Prints JSON objects, one a line: {"progress": tally} about twice a second, at last
 * {"done": tally, ...}. Exit status: 0 no required property is violated, 1 one is, 2 bad usage or a schedule that
 * cannot be replayed, 3 nothing could be played, or a plug-in does not return, 4 the plug-in cannot be explored. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/explore/explore_options.h"
#include "harness/library/library_world.h"
#include "harness/scheduler/clock.h"
#include "harness/search/search.h"
#include "harness/simulation/world.h"

enum { ADAPTER_SHRINK_RUNS = 300 };

static void line_print(json_t *object) {
    json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

static void progress_print(const struct search *search) {
    line_print(json_pack("{s:o}", "progress", tally_json(search)));
}

static int inconclusive(const char *reason) {
    fprintf(stderr, "explore: %s\n", reason);
    return STATUS_INCONCLUSIVE;
}

/* --- a search --- */

static json_t *found_json(struct search *search) {
    static struct schedule smallest, control;
    struct search_world *world = search->world;
    bool anew = search_shrink(search, &smallest);
    json_t *found =
        json_pack("{s:I,s:I,s:o,s:o,s:o,s:b}", "number", (json_int_t)search->found_number, "origin",
                  (json_int_t)search->found_origin, "violated", violated_json(world, &search->found_outcome), "broken",
                  broken_json(world, &search->found_outcome), "as_found", schedule_json(world->space, &search->found),
                  "anew", (int)anew);
    json_object_set_new(found, "smallest", schedule_json(world->space, &smallest));
    world->operations->describe(world, !anew, found);
    if (search_control(search, &smallest, &control))
        json_object_set_new(found, "control", schedule_json(world->space, &control));
    schedule_free(&smallest);
    schedule_free(&control);
    return found;
}

static int explore(struct search *search) {
    int64_t began_ns = clock_real_mono_ns();
    bool violated = search_run(search, progress_print);
    int64_t took_ns = clock_real_mono_ns() - began_ns;
    if (search->gave_up) return inconclusive(search->world->reason);
    if (search->tally.schedules == 0 && search->tally.unplayed > 0) return inconclusive(search->tally.unplayed_reason);
    json_t *done =
        json_pack("{s:o,s:I,s:b,s:I,s:o}", "done", tally_json(search), "took_ns", (json_int_t)took_ns, "exhausted",
                  (int)search->exhausted, "horizon", (json_int_t)search->horizon, "groups", groups_json(search));
    search->world->operations->introduce(search->world, done);
    if (violated && (!search->shared || atomic_load(&search->shared->violated) == search->found_number))
        json_object_set_new(done, "found", found_json(search));
    line_print(done);
    return violated ? STATUS_VIOLATED : STATUS_HOLDS;
}

/* --- a replay --- */

static bool lines_read(const char *path, const struct choice_space *space, struct schedule *schedule) {
    FILE *file = fopen(path, "re");
    char line[2 * SCHEDULE_LINE];
    if (!file) {
        fprintf(stderr, "explore: %s: %s\n", path, strerror(errno));
        return false;
    }
    for (int count = 1; fgets(line, sizeof line, file); count++) {
        const char *reason;
        line[strcspn(line, "\n")] = '\0';
        if (schedule_line_read(space, line, schedule, &reason)) continue;
        line_print(json_pack("{s:i,s:s}", "line", count, "reason", reason));
        fclose(file);
        return false;
    }
    fclose(file);
    return true;
}

/* Nearly the same schedule, which violates nothing of it. */
static void control_add(struct search *search, const struct schedule *schedule, uint64_t found,
                        const struct search_outcome *outcome, json_t *result) {
    static struct schedule control;
    search->found_number = search->found_origin = found;
    search->found_outcome = *outcome;
    if (search_control(search, schedule, &control))
        json_object_set_new(result, "control", schedule_json(search->world->space, &control));
    schedule_free(&control);
}

static int schedule_replay(struct search *search, const struct schedule *schedule, uint64_t found, bool *used) {
    struct search_world *world = search->world;
    world->operations->watch(world, &search->schedule);
    uint64_t seed = search_seed(search->settings->seed, found);
    struct search_outcome outcome = search_replay(search, schedule, seed, found, true, used);
    if (!outcome.played) return inconclusive(world->reason);
    size_t unused = 0; /* the first deviation that did not take effect */
    while (unused < schedule->count && used[unused]) unused++;
    if (unused < schedule->count) {
        line_print(json_pack(
            "{s:i,s:s}", "line",
            workload_calls(&schedule->workload) + (schedule->workload.settings[0] != '\0') + (int)unused + 1, "reason",
            "this never comes up, or cannot happen then: the schedule is for another lock, version or "
            "build, or was changed by hand"));
        return STATUS_BAD;
    }
    json_t *result = json_pack("{s:I,s:o,s:o,s:I,s:o}", "steps", (json_int_t)outcome.steps, "violated",
                               violated_json(world, &outcome), "broken", broken_json(world, &outcome), "digest",
                               (json_int_t)(outcome.digest >> 1), "checkpoints", struck_json(search));
    world->operations->introduce(world, result);
    world->operations->describe(world, false, result);
    if (outcome.violates) control_add(search, schedule, found, &outcome, result);
    if (outcome.violates && !world->has_programs) /* the caller judges the last history */
        search_replay(search, schedule, seed, found, true, NULL);
    line_print(result);
    return outcome.violates ? STATUS_VIOLATED : STATUS_HOLDS;
}

static int replay(struct search *search, const struct explore_arguments *arguments) {
    static struct schedule schedule;
    schedule.workload.clients = search->world->has_programs ? 0 : arguments->lock.clients;
    if (!lines_read(arguments->replay, search->world->space, &schedule)) {
        schedule_free(&schedule);
        return STATUS_BAD;
    }
    bool *used = calloc(schedule.count + 1, sizeof *used);
    if (!used) abort();
    int status = schedule_replay(search, &schedule, (uint64_t)arguments->number, used);
    free(used);
    schedule_free(&schedule);
    return status;
}

/* --- files that this process shares with others --- */

/* Maps a file of at least `least` bytes into *map; without a path nothing is mapped. False: the reason is on standard
 * error. */
static bool file_map(const char *path, size_t least, void *map) {
    if (!path) return true;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t length = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    bool whole = length > 0 && (uint64_t)length >= least;
    void *mapped =
        fd >= 0 && whole ? mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    const char *reason = fd >= 0 && !whole ? "it is too short" : strerror(errno);
    if (mapped == MAP_FAILED) fprintf(stderr, "explore: %s: %s\n", path, reason);
    if (fd >= 0) close(fd);
    if (mapped != MAP_FAILED) memcpy(map, &mapped, sizeof mapped);
    return mapped != MAP_FAILED;
}

static bool files_map(const struct explore_arguments *arguments, struct search *search) {
    const struct search_settings *settings = &arguments->search;
    uint64_t left = settings->most > settings->first ? settings->most - settings->first : 0;
    uint64_t apart = settings->session == 1 ? settings->stride : 1;
    uint64_t schedules = left / apart + (left % apart > 0);
    size_t digests = schedules < SIZE_MAX / sizeof *search->digests ? schedules * sizeof *search->digests : SIZE_MAX;
    return file_map(arguments->shared, sizeof *search->shared, &search->shared) &&
           file_map(arguments->digests, digests, &search->digests);
}

/* --- the program --- */

static struct search search;

static int search_in(struct explore_arguments *arguments, struct search_world *world) {
    search.world = world;
    search.settings = &arguments->search;
    int status = STATUS_INCONCLUSIVE;
    if (!search_begin(&search)) (void)inconclusive(world->reason);
    else status = arguments->replay ? replay(&search, arguments) : explore(&search);
    explore_plugin_check();
    search_free(&search);
    return status;
}

static struct world simulated;
static struct library_world hosted;
static struct application application;

static int lock_explore(struct explore_arguments *arguments) {
    struct history_error error = {.text = ""};
    if (!world_open(&simulated, &arguments->lock, &error)) {
        fprintf(stderr, "explore: %s\n", error.text);
        return STATUS_BAD;
    }
    int status = search_in(arguments, &simulated.search);
    world_close(&simulated);
    return status;
}

static int adapter_explore(struct explore_arguments *arguments) {
    int status = STATUS_HOLDS;
    if (!library_world_open(&hosted, &arguments->adapter)) {
        status = inconclusive(hosted.search.reason);
    } else if (arguments->hello) {
        static const struct workload nothing; /* what an application does alone is seen before a schedule */
        if (arguments->app && !library_begin(&hosted.search, &nothing, arguments->search.seed, 0))
            status = inconclusive(hosted.search.reason);
        json_t *offer = json_object();
        hosted.search.operations->introduce(&hosted.search, offer);
        line_print(offer);
    } else {
        status = search_in(arguments, &hosted.search);
    }
    library_world_close(&hosted);
    if (!arguments->app) return status;
    if (application.wrong && status == STATUS_INCONCLUSIVE) status = STATUS_BAD;
    application_free(&application);
    return status;
}

static bool application_take(struct explore_arguments *arguments) {
    char reason[SEARCH_REASON];
    arguments->adapter.protocol = &APPLICATION_PROTOCOL;
    arguments->adapter.application = &application;
    if (!application_read(&application, arguments->app, reason)) {
        fprintf(stderr, "explore: %s\n", reason);
        return false;
    }
    arguments->adapter.lasts_ms = application.lasts_ms;
    arguments->adapter.timers_ms = application.timers_ms;
    return true;
}

int main(int argc, char **argv) {
    static struct explore_arguments arguments = {
        .service = &REDIS_KIND,
        .lock = {.wait_ms = -1, .turns = 1, .permits = 1, .lease_ms = 1000, .work_ms = 20},
        .adapter = {.protocol = &ADAPTER_PROTOCOL, .lease_ms = 2000, .permits = 2},
        .search = {.strategy = STRATEGIES,
                   .most = UINT64_MAX,
                   .stride = 1,
                   .session = 1,
                   .short_session = 1,
                   .shrink_runs = -1}};
    if (!explore_options_parse(argc, argv, &arguments)) return STATUS_BAD;
    bool hosts = arguments.adapter.program != NULL || arguments.app;
    if (arguments.app && !application_take(&arguments)) return STATUS_BAD;
    world_search_make(&simulated, &arguments.lock);
    library_search_make(&hosted, &arguments.adapter);
    if (!explore_names_read(&arguments, hosts ? &hosted.search : &simulated.search) ||
        !explore_options_whole(&arguments) || !files_map(&arguments, &search))
        return STATUS_BAD;
    if (arguments.search.shrink_runs < 0) arguments.search.shrink_runs = hosts ? ADAPTER_SHRINK_RUNS : 0;
    return hosts ? adapter_explore(&arguments) : lock_explore(&arguments);
}
