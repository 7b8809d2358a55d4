/* explore OPTIONS: searches schedules of one lock against servers that run already, or follows one schedule.
 *
 *   --lock L | --plugin FILE
 *   --clients N --store MODE --lease-ms N --wait-ms N --work-ms N --turns N --permits N [--fixed-lease] [--extends]
 *   --node SOCKET --clock FILE   one server each, in pairs: its unix socket and its clock page
 *   [--replicas N]               of each node: all first ones stand behind the nodes, then all second ones
 *   --directory D                for the history: D/history
 *   --seed N --bound-ms N        with it schedules end in a quiet, and liveness is judged
 *   --require A,B                the properties that count
 *   --fault KIND=N               at most N of these in a schedule: harness/explorer/schedule.h names them
 *   --strategy uniform|pct|portfolio|usual|exhaustive [--bound N]
 *   --first N --stride N --most N --seconds N --shrink N [--goes-on]
 *   --shared FILE --digests FILE
 *   --follow FILE --number N     instead: one schedule, as lines; --number is the one it was found as
 *
 * Prints JSON objects, one a line: {"told": tally} now and then, at last {"done": tally, ...}. Exit status: 0 nothing
 * required is violated, 1 something is, 2 bad usage or a schedule that cannot be followed, 3 a server does not work, or
 * a plug-in does not come back, 4 the plug-in is none that can be explored. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/explorer/search.h"
#include "harness/plugin.h"

enum { STATUS_HOLDS = 0, STATUS_VIOLATED = 1, STATUS_BAD = 2, STATUS_INCONCLUSIVE = 3, STATUS_GAVE_UP = 4 };
enum { PATH_ROOM = 4096, PLUGIN_LIMIT_S = 30 }; /* how long one schedule of a plug-in, of milliseconds, may last */

static const char *const STRATEGY_NAMES[] = {"uniform", "pct", "usual", "exhaustive", "portfolio"};
struct arguments {
    struct world_settings world;
    struct search_settings search;
    const char *directory, *shared, *digests, *follow;
    int64_t number;
    int clocks;
    char history[PATH_ROOM], sink[PATH_ROOM];
};

/* --- the command line --- */

static bool number(const char *text, int64_t least, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= least;
}

static bool small(const char *text, int most, int *value) {
    int64_t wide;
    if (!number(text, 1, &wide) || wide > most) return false;
    *value = (int)wide;
    return true;
}

static bool unsigned_number(const char *text, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool fault_option(const char *text, struct fault_budget *budget) {
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++) {
        const char *word = schedule_fault_word((enum choice_kind)kind);
        size_t length = strlen(word);
        if (strncmp(text, word, length) == 0 && text[length] == '=')
            return small(text + length + 1, STRATEGY_FAULTS, &budget->most[kind]);
    }
    return false;
}

static bool strategy_option(const char *text, enum strategy_kind *strategy) {
    for (unsigned each = 0; each < sizeof STRATEGY_NAMES / sizeof STRATEGY_NAMES[0]; each++)
        if (strcmp(text, STRATEGY_NAMES[each]) == 0) return *strategy = (enum strategy_kind)each, true;
    return false;
}

static bool require_option(char *list, bool *required) {
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        bool found = false;
        for (int each = 0; CHECKER_TABLE[each]; each++)
            if (strcmp(word, CHECKER_TABLE[each]->property) == 0) required[each] = found = true;
        if (!found) return false;
    }
    return true;
}

/* Only what redis-servers hold can be explored. */
static bool lock_option(const char *name, const struct lock_type **lock) {
    *lock = lock_find(name);
    return *lock && (*lock)->service == LOCK_SERVICE_REDIS;
}

/* --- a plug-in --- */

static struct plugin plugin;
static const char PLUGIN_LATE[] = "it did not come back within 30 s from what it was asked in one schedule\n";

static void plugin_late(int signal) {
    (void)signal;
    if (write(STDERR_FILENO, PLUGIN_LATE, sizeof PLUGIN_LATE - 1) < 0) _exit(STATUS_GAVE_UP);
    _exit(STATUS_INCONCLUSIVE);
}

_Noreturn static void plugin_refuse(const char *reason) {
    fprintf(stderr, "%s\n", reason);
    exit(STATUS_GAVE_UP);
}

/* All clients are coroutines of this process, in schedule after schedule: what one leaves in a static variable another
 * would find, and the order of schedules would matter. */
static void plugin_look(void) {
    size_t offset;
    char reason[PLUGIN_REASON];
    alarm(PLUGIN_LIMIT_S);
    if (!plugin.lock || plugin_statics_same(&plugin, &offset)) return;
    snprintf(
        reason, sizeof reason,
        "it has written to a static variable (at %#zx by `nm -n`), which all clients of the explorer share: what a "
        "client keeps belongs into lock->state",
        offset);
    plugin_refuse(reason);
}

static bool plugin_option(const char *path, struct arguments *arguments) {
    char reason[PLUGIN_REASON];
    if (!plugin_load(path, &plugin, reason)) plugin_refuse(reason);
    arguments->world.lock = plugin.lock;
    arguments->search.before_each = plugin_look;
    signal(SIGALRM, plugin_late);
    return plugin.lock->service == LOCK_SERVICE_REDIS;
}

static bool node_option(const char *text, const char **paths, int *count) {
    if (*count == WORLD_SERVERS * WORLD_NODES) return false;
    paths[(*count)++] = text;
    return true;
}

static const struct option OPTIONS[] = {
    {"lock", required_argument, NULL, 'l'},      {"clients", required_argument, NULL, 'c'},
    {"store", required_argument, NULL, 'S'},     {"lease-ms", required_argument, NULL, 'L'},
    {"wait-ms", required_argument, NULL, 'W'},   {"work-ms", required_argument, NULL, 'w'},
    {"turns", required_argument, NULL, 't'},     {"permits", required_argument, NULL, 'p'},
    {"fixed-lease", no_argument, NULL, 'f'},     {"extends", no_argument, NULL, 'e'},
    {"node", required_argument, NULL, 'n'},      {"clock", required_argument, NULL, 'C'},
    {"directory", required_argument, NULL, 'D'}, {"seed", required_argument, NULL, 's'},
    {"require", required_argument, NULL, 'r'},   {"fault", required_argument, NULL, 'F'},
    {"strategy", required_argument, NULL, 'T'},  {"first", required_argument, NULL, '1'},
    {"stride", required_argument, NULL, '2'},    {"most", required_argument, NULL, '3'},
    {"seconds", required_argument, NULL, '4'},   {"shrink", required_argument, NULL, '5'},
    {"shared", required_argument, NULL, '6'},    {"digests", required_argument, NULL, '7'},
    {"follow", required_argument, NULL, '8'},    {"replicas", required_argument, NULL, 'R'},
    {"bound-ms", required_argument, NULL, 'B'},  {"bound", required_argument, NULL, 'b'},
    {"number", required_argument, NULL, '9'},    {"goes-on", no_argument, NULL, 'g'},
    {"plugin", required_argument, NULL, 'P'},    {0}};

static bool option_take(struct arguments *arguments, int option, char *text) {
    struct world_settings *world = &arguments->world;
    struct search_settings *search = &arguments->search;
    switch (option) {
    case 'l': return lock_option(text, &world->lock);
    case 'P': return plugin_option(text, arguments);
    case 'c': return small(text, WORLD_CLIENTS, &world->clients);
    case 'S': return resource_mode_find(text, &world->store);
    case 'L': return number(text, 1, &world->lease_ms);
    case 'W': return number(text, -1, &world->wait_ms);
    case 'w': return number(text, 0, &world->work_ms);
    case 't': return number(text, 1, &world->turns);
    case 'p': return number(text, 1, &world->permits);
    case 'f': return world->fixed_lease = true;
    case 'e': return world->extends = true;
    case 'n': return node_option(text, world->sockets, &world->nodes);
    case 'C': return node_option(text, world->clocks, &arguments->clocks);
    case 'D': return (arguments->directory = text) != NULL;
    case 's': return unsigned_number(text, &search->seed);
    case 'r': return require_option(text, search->required);
    case 'F': return fault_option(text, &search->budget);
    case 'T': return strategy_option(text, &search->strategy);
    case 'R': return small(text, WORLD_REPLICAS, &world->replicas);
    case 'B': return number(text, 1, &world->bound_ms);
    case 'b': return small(text, STRATEGY_FAULTS, &search->bound);
    case 'g': return search->goes_on = true;
    case '1': return unsigned_number(text, &search->first);
    case '2': return unsigned_number(text, &search->stride) && search->stride > 0;
    case '3': return unsigned_number(text, &search->most);
    case '4': return number(text, 0, &search->seconds);
    case '5': return number(text, 0, &search->shrink_runs);
    case '6': return (arguments->shared = text) != NULL;
    case '7': return (arguments->digests = text) != NULL;
    case '8': return (arguments->follow = text) != NULL;
    case '9': return number(text, 0, &arguments->number);
    default: return false;
    }
}

static bool parse(int argc, char **argv, struct arguments *arguments) {
    for (int option; (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;)
        if (!option_take(arguments, option, optarg))
            return fprintf(stderr, "explore: not a usable value: %s\n", optarg ? optarg : argv[optind - 1]), false;
    struct world_settings *world = &arguments->world;
    int each = 1 + world->replicas; /* servers a node */
    bool whole = world->lock && world->clients && world->nodes && world->nodes == arguments->clocks &&
                 world->nodes % each == 0 && world->nodes / each <= WORLD_NODES && arguments->directory &&
                 optind == argc;
    if (!whole) return fprintf(stderr, "explore: lock, clients, directory, nodes with clocks: one is missing\n"), false;
    world->nodes /= each;
    snprintf(arguments->history, sizeof arguments->history, "%s/history", arguments->directory);
    snprintf(arguments->sink, sizeof arguments->sink, "%s/sink", arguments->directory);
    arguments->world.history = arguments->history;
    arguments->world.sink = arguments->sink;
    arguments->world.seed = arguments->search.seed;
    return true;
}

/* --- what is said --- */

static json_t *groups_json(const struct search_tally *tally) {
    json_t *groups = json_array();
    for (int each = 0; each < tally->group_count; each++) {
        const struct search_group *group = &tally->groups[each];
        json_t *properties = json_array();
        for (int place = 0; CHECKER_TABLE[place]; place++)
            if (group->properties >> place & 1)
                json_array_append_new(properties, json_string(CHECKER_TABLE[place]->property));
        json_t *faults = json_array();
        for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
            if (group->faults >> kind & 1)
                json_array_append_new(faults, json_string(schedule_fault_word((enum choice_kind)kind)));
        json_array_append_new(groups,
                              json_pack("{s:o,s:o,s:I,s:I}", "violates", properties, "faults", faults, "schedules",
                                        (json_int_t)group->schedules, "first", (json_int_t)group->first));
    }
    return groups;
}

/* Which faults struck whom behind which checkpoint; of one that was only passed, none. */
static json_t *struck_json(const struct search *search) {
    json_t *checkpoints = json_object();
    for (int place = 0; place <= search->world->checkpoint_count; place++) {
        json_t *faults = json_object();
        for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++) {
            uint64_t count = search->tally.struck[place][kind];
            if (count)
                json_object_set_new(faults, schedule_fault_word((enum choice_kind)kind),
                                    json_integer((json_int_t)count));
        }
        json_object_set_new(checkpoints, place ? search->world->checkpoints[place] : "start", faults);
    }
    return checkpoints;
}

static json_t *tally_json(const struct search *search) {
    const struct search_tally *tally = &search->tally;
    json_t *verdicts = json_object(), *faults = json_object();
    for (int each = 0; CHECKER_TABLE[each]; each++) {
        const uint64_t *count = tally->count[each];
        json_object_set_new(verdicts, CHECKER_TABLE[each]->property,
                            json_pack("{s:I,s:I,s:I}", "holds", (json_int_t)count[VERDICT_HOLDS], "violated",
                                      (json_int_t)count[VERDICT_VIOLATED], "inconclusive",
                                      (json_int_t)count[VERDICT_INCONCLUSIVE]));
    }
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
        json_object_set_new(faults, schedule_fault_word((enum choice_kind)kind),
                            json_integer((json_int_t)tally->faults[kind]));
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:o,s:o,s:o}", "commands", (json_int_t)tally->commands, "schedules",
                     (json_int_t)tally->schedules, "steps", (json_int_t)tally->steps, "grants",
                     (json_int_t)tally->grants, "cut_short", (json_int_t)tally->cut_short, "unfit",
                     (json_int_t)tally->unfit, "unfit_reason", tally->unfit_reason, "verdicts", verdicts, "faults",
                     faults, "checkpoints", struck_json(search));
}

static void print_line(json_t *object) {
    json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

static void tell(const struct search *search) {
    print_line(json_pack("{s:o}", "told", tally_json(search)));
}

static json_t *schedule_json(const struct schedule *schedule) {
    json_t *lines = json_array();
    char line[SCHEDULE_LINE];
    for (size_t each = 0; each < schedule->count; each++)
        json_array_append_new(lines, json_string(deviation_write(&schedule->deviations[each], line)));
    return lines;
}

static json_t *violated_json(const struct search_outcome *outcome) {
    json_t *properties = json_array();
    for (int each = 0; CHECKER_TABLE[each]; each++)
        if (outcome->status[each] == VERDICT_VIOLATED)
            json_array_append_new(properties, json_string(CHECKER_TABLE[each]->property));
    return properties;
}

/* --- the two things that it does --- */

static int explore(struct search *search) {
    uint64_t found = 0;
    int clients = search->world->settings.clients;
    int64_t began_ns = clock_real_mono_ns();
    bool violated = search_all(search, &found, tell);
    int64_t took_ns = clock_real_mono_ns() - began_ns;
    json_t *done = json_pack("{s:o,s:I,s:b,s:I,s:o}", "done", tally_json(search), "took_ns", (json_int_t)took_ns,
                             "exhausted", (int)search->exhausted, "horizon", (json_int_t)search->horizon, "groups",
                             groups_json(&search->tally));
    bool first = violated && (!search->shared || atomic_load(&search->shared->violated) == found);
    if (first) {
        json_object_set_new(done, "number", json_integer((json_int_t)found));
        json_object_set_new(done, "origin", json_integer((json_int_t)search_origin(search, found)));
        json_object_set_new(done, "violated", violated_json(&search->found_outcome));
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
    if (!file) return fprintf(stderr, "%s: %s\n", path, strerror(errno)), false;
    for (int count = 1; fgets(line, sizeof line, file); count++) {
        struct deviation deviation;
        const char *reason;
        line[strcspn(line, "\n")] = '\0';
        if (deviation_read(line, &deviation, &reason)) {
            schedule_add(schedule, deviation);
            continue;
        }
        print_line(json_pack("{s:i,s:s}", "line", count, "reason", reason));
        return fclose(file), false;
    }
    return fclose(file), true;
}

static int follow(struct search *search, const struct arguments *arguments) {
    struct schedule schedule = {0};
    if (!lines_read(arguments->follow, &schedule)) return schedule_free(&schedule), STATUS_BAD;
    uint64_t found = (uint64_t)arguments->number;
    bool *used = calloc(schedule.count + 1, sizeof *used);
    if (!used) abort();
    struct search_outcome outcome = search_follow(search, &schedule, search->world->settings.clients,
                                                  search_seed(search->settings->seed, found), found, used);
    int status = outcome.violates ? STATUS_VIOLATED : STATUS_HOLDS;
    for (size_t each = 0; each < schedule.count && status != STATUS_BAD; each++) {
        if (used[each]) continue;
        status = STATUS_BAD;
        print_line(
            json_pack("{s:i,s:s}", "line", (int)each + 1, "reason",
                      "this never comes up, or cannot happen then: the schedule is for another lock or build, or "
                      "was changed by hand"));
    }
    if (status != STATUS_BAD)
        print_line(json_pack("{s:I,s:o,s:I,s:o}", "steps", (json_int_t)outcome.steps, "violated",
                             violated_json(&outcome), "digest", (json_int_t)(outcome.digest >> 1), "checkpoints",
                             struck_json(search)));
    free(used);
    schedule_free(&schedule);
    return status;
}

static void *file_map(const char *path) {
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return NULL;
    off_t length = lseek(fd, 0, SEEK_END);
    void *map = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

int main(int argc, char **argv) {
    static struct world world;
    static struct arguments arguments = {
        .world = {.wait_ms = -1, .turns = 1, .permits = 1, .lease_ms = 1000, .work_ms = 20},
        .search = {.strategy = STRATEGIES, .stride = 1}};
    struct history_error error = {.text = ""};
    if (!parse(argc, argv, &arguments)) return STATUS_BAD;
    if (!world_open(&world, &arguments.world, &error)) return fprintf(stderr, "explore: %s\n", error.text), STATUS_BAD;
    struct search search = {.world = &world,
                            .settings = &arguments.search,
                            .reader = history_reader_open(arguments.history, &error),
                            .shared = file_map(arguments.shared),
                            .digests = file_map(arguments.digests)};
    if (!search.reader) return fprintf(stderr, "explore: %s\n", error.text), STATUS_BAD;
    int status = STATUS_INCONCLUSIVE;
    if (!search_begin(&search)) fprintf(stderr, "explore: the lock could not be opened\n");
    else status = arguments.follow ? follow(&search, &arguments) : explore(&search);
    if (plugin.lock) plugin_look();
    search_free(&search);
    history_reader_close(search.reader);
    world_close(&world);
    return status;
}
