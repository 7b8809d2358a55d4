/* explore OPTIONS: searches schedules of one lock on running redis-servers, or replays one schedule.
 *
 *   --lock L | --plugin FILE
 *   --clients N --store MODE --lease-ms N --wait-ms N --work-ms N --turns N --permits N [--fixed-lease] [--extends]
 *   [--checks-validity] [--varied N]                                         enum world_varied
 *   --node SOCKET --clock FILE   a server: its unix socket and its clock page; repeated for each server
 *   [--replicas N]               replicas of each node: the first ones follow the nodes, then come the second ones
 *   --directory D                the history is D/history
 *   --seed N
 *   [--bound-ms N]               judge liveness: schedules end quietly, and a free lock is claimed within N ms
 *   --require A,B/SORT           properties, or sorts of their violations, that a schedule must not violate; with
 * fairness, the history has order_ms, and some clients give up sooner than others
 *   [--require-steady LIST]      as --require, of schedules with one fault at most, and none that lasts
 *   [--faults-total N]           at most N faults of all kinds together
 *   [--spare-store]              no message to the resource is lost, held, repeated or refused
 *   --fault KIND=N               at most N faults of this kind in a schedule; schedule.h lists the kinds
 *   --strategy uniform|pct|portfolio|usual|exhaustive|novelty [--deviations N]
 *   --first N --stride N --most N --seconds N --shrink N [--keep-going]      struct search_settings
 *   --shared FILE --digests FILE                                             struct schedule_search
 *   --replay FILE --number N     replay the schedule in FILE, which search number N has found
 *
 * Prints JSON objects, one a line: {"progress": tally} about twice a second, at last {"done": tally, ...}. Exit status:
 * 0 no required property is violated, 1 one is, 2 bad usage or a schedule that cannot be replayed, 3 a server does not
 * work, or a plug-in does not return, 4 the plug-in cannot be explored. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/explorer/commands_json.h"
#include "harness/explorer/explore_options.h"
#include "harness/explorer/search_json.h"
#include "harness/explorer/shrink.h"
#include "harness/scheduler/clock.h"
#include "harness/simulation/world.h"

static void print_line(json_t *object) {
    json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

static void progress_print(const struct schedule_search *search) {
    print_line(json_pack("{s:o}", "progress", tally_json(search)));
}

static int unopened(uint64_t number) {
    fprintf(stderr, "explore: the lock could not be opened in schedule %llu\n", (unsigned long long)number);
    return STATUS_INCONCLUSIVE;
}

static int explore(struct schedule_search *search) {
    uint64_t found = 0;
    int clients = search->world->settings.clients;
    int64_t began_ns = clock_real_mono_ns();
    bool violated = search_run(search, &found, progress_print);
    int64_t took_ns = clock_real_mono_ns() - began_ns;
    if (search->unopened) return unopened(found);
    json_t *done = json_pack("{s:o,s:I,s:b,s:I,s:o}", "done", tally_json(search), "took_ns", (json_int_t)took_ns,
                             "exhausted", (int)search->exhausted, "horizon", (json_int_t)search->horizon, "groups",
                             groups_json(&search->tally));
    bool first = violated && (!search->shared || atomic_load(&search->shared->violated) == found);
    if (first) {
        json_object_set_new(done, "number", json_integer((json_int_t)found));
        json_object_set_new(done, "origin", json_integer((json_int_t)search->found_origin));
        json_object_set_new(done, "violated", violated_json(&search->found_outcome));
        json_object_set_new(done, "broken", broken_json(&search->found_outcome));
        json_object_set_new(done, "found", schedule_json(&search->found));
        search_shrink(search, found, &clients);
        json_object_set_new(done, "clients", json_integer(clients));
        json_object_set_new(done, "schedule", schedule_json(&search->schedule));
    }
    print_line(done);
    return violated ? STATUS_VIOLATED : STATUS_HOLDS;
}

static bool lines_read(const char *path, struct schedule *schedule) {
    FILE *file = fopen(path, "re");
    char line[2 * SCHEDULE_LINE];
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    for (int count = 1; fgets(line, sizeof line, file); count++) {
        struct deviation deviation;
        const char *reason;
        line[strcspn(line, "\n")] = '\0';
        if (deviation_read(line, &deviation, &reason)) {
            schedule_add(schedule, deviation);
            continue;
        }
        print_line(json_pack("{s:i,s:s}", "line", count, "reason", reason));
        fclose(file);
        return false;
    }
    fclose(file);
    return true;
}

/* `commands` and `strikes` are arrays that get an object for each command, and for each that a fault strikes. */
static struct search_outcome replay_watched(struct schedule_search *search, const struct schedule *schedule,
                                            uint64_t found, bool *used, json_t *commands, json_t *strikes) {
    struct commands_json list = {search->world, &search->schedule, commands, strikes, redisReaderCreate()};
    const struct command_witness witness = {commands_json_tell, commands_json_strike, &list};
    if (!list.reader) abort();
    search->world->witness = &witness;
    struct search_outcome outcome = search_replay(search, schedule, search->world->settings.clients,
                                                  search_seed(search->settings->seed, found), found, used);
    search->world->witness = NULL;
    redisReaderFree(list.reader);
    return outcome;
}

static int replay(struct schedule_search *search, const struct explore_arguments *arguments) {
    struct schedule schedule = {0};
    if (!lines_read(arguments->replay, &schedule)) {
        schedule_free(&schedule);
        return STATUS_BAD;
    }
    uint64_t found = (uint64_t)arguments->number;
    bool *used = calloc(schedule.count + 1, sizeof *used);
    if (!used) abort();
    json_t *commands = json_array(), *strikes = json_array();
    struct search_outcome outcome = replay_watched(search, &schedule, found, used, commands, strikes);
    int status = outcome.violates ? STATUS_VIOLATED : STATUS_HOLDS;
    if (!outcome.opened) {
        json_decref(commands);
        json_decref(strikes);
        free(used);
        schedule_free(&schedule);
        return unopened(found);
    }
    for (size_t each = 0; each < schedule.count && status != STATUS_BAD; each++) {
        if (used[each]) continue;
        status = STATUS_BAD;
        print_line(
            json_pack("{s:i,s:s}", "line", (int)each + 1, "reason",
                      "this never comes up, or cannot happen then: the schedule is for another lock or build, or "
                      "was changed by hand"));
    }
    if (status != STATUS_BAD)
        print_line(json_pack("{s:I,s:o,s:I,s:o,s:O,s:O}", "steps", (json_int_t)outcome.steps, "violated",
                             violated_json(&outcome), "digest", (json_int_t)(outcome.digest >> 1), "checkpoints",
                             struck_json(search), "commands", commands, "strikes", strikes));
    json_decref(commands);
    json_decref(strikes);
    free(used);
    schedule_free(&schedule);
    return status;
}

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

/* The files that this process shares with others. */
static bool files_map(const struct explore_arguments *arguments, struct schedule_search *search) {
    const struct search_settings *settings = &arguments->search;
    uint64_t left = settings->most > settings->first ? settings->most - settings->first : 0;
    uint64_t schedules = left / settings->stride + (left % settings->stride > 0);
    size_t digests = schedules < SIZE_MAX / sizeof *search->digests ? schedules * sizeof *search->digests : SIZE_MAX;
    return file_map(arguments->shared, sizeof *search->shared, &search->shared) &&
           file_map(arguments->digests, digests, &search->digests);
}

int main(int argc, char **argv) {
    static struct world world;
    static struct explore_arguments arguments = {
        .world = {.wait_ms = -1, .turns = 1, .permits = 1, .lease_ms = 1000, .work_ms = 20},
        .search = {.strategy = STRATEGIES, .stride = 1}};
    struct history_error error = {.text = ""};
    if (!explore_options_parse(argc, argv, &arguments)) return STATUS_BAD;
    struct schedule_search search = {.world = &world, .settings = &arguments.search};
    if (!files_map(&arguments, &search)) return STATUS_BAD;
    if (!world_open(&world, &arguments.world, &error)) {
        fprintf(stderr, "explore: %s\n", error.text);
        return STATUS_BAD;
    }
    search.reader = history_reader_open(arguments.history, &error);
    if (!search.reader) {
        fprintf(stderr, "explore: %s\n", error.text);
        return STATUS_BAD;
    }
    int status = STATUS_INCONCLUSIVE;
    if (!search_begin(&search)) fprintf(stderr, "explore: the lock could not be opened\n");
    else status = arguments.replay ? replay(&search, &arguments) : explore(&search);
    explore_plugin_check();
    search_free(&search);
    history_reader_close(search.reader);
    world_close(&world);
    return status;
}
