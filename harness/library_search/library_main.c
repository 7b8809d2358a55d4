/* explore-library OPTIONS: searches workloads and schedules of a library on real servers, or replays one.
 *
 *   --adapter PROGRAM            hosts the library (docs/adapters.md, protocol 2)
 *   --service NAME               what the next servers are: redis without it; redis-cluster: nodes of a cluster
 *   --node ADDRESS --clock FILE  a running redis-server: its unix socket and its clock page; repeated for each server
 *   --at PORT                    the port that other servers name for this one; repeated for each server, or left out
 *   --master NAME                by which sentinels (--service redis-sentinel) know the first server
 *   --node ADDRESS --start FILE  another server: its address (library_server.h), and the program that starts it
 *   --directory D                for sockets and logs
 *   --lease-ms N --permits N --seed N
 *   --form NAME                  acquires are drawn of this form; repeated; of all forms without it
 *   --require A,B                promises that a schedule must not break; all without it
 *   --fault KIND                 faults of this kind may strike; repeated
 *   --faults-total N             at most N faults in a schedule
 *   --most N --session N --short-session N --short-sessions N --first-session N --stride N
 *   --seconds N --shrink N [--whole-sessions] [--keep-going]                 struct library_search_settings
 *   --shared FILE --digests FILE                                            struct library_search
 *   --replay FILE --number N     replays the schedule in FILE, which search number N has found
 *   --hello                      prints what the library offers
 *
 * Prints JSON objects, one a line: {"progress": tally} about twice a second, at last {"done": tally, ...}. Exit status:
 * 0 no required promise is broken, 1 one is, 2 bad usage or a schedule that cannot be replayed, 3 nothing could be
 * played. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/library_search/library_json.h"
#include "harness/library_search/library_shrink.h"
#include "harness/scheduler/clock.h"

enum { STATUS_HOLDS, STATUS_VIOLATED, STATUS_BAD, STATUS_INCONCLUSIVE };
enum { SHRINK_RUNS = 300 };

struct library_arguments {
    struct library_settings world;
    struct library_search_settings search;
    const char *shared, *digests, *replay;
    const struct server_kind *service;
    int starts, ports;
    uint64_t number;
    bool hello;
};

static void library_print_line(json_t *object) {
    json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

/* --- options --- */

static bool number_read(const char *text, uint64_t least, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *text != '-' && *value >= least;
}

static bool small_read(const char *text, int most, int *value) {
    uint64_t wide;
    bool good = number_read(text, 1, &wide) && wide <= (uint64_t)most;
    *value = good ? (int)wide : 0;
    return good;
}

static bool time_read(const char *text, uint64_t least, int64_t *value) {
    uint64_t wide;
    bool good = number_read(text, least, &wide) && wide <= 1000000000;
    *value = good ? (int64_t)wide : 0;
    return good;
}

static bool require_read(char *list, uint32_t *required) {
    *required = 0;
    for (char *rest, *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        int promise = 0;
        while (promise < PROMISES && strcmp(word, promise_name((enum promise)promise)) != 0) promise++;
        if (promise == PROMISES) return false;
        *required |= (uint32_t)1 << promise;
    }
    return *required != 0;
}

static bool fault_read(const char *name, struct library_budget *budget) {
    enum library_choice_kind kind = library_fault_named(name);
    budget->allowed[kind] = true;
    return kind != LIBRARY_NONE;
}

static bool path_read(const char *text, const char **paths, int *count) {
    if (*count == LIBRARY_NODES) return false;
    paths[(*count)++] = text;
    return true;
}

static bool node_read(const char *text, struct library_arguments *arguments) {
    if (arguments->world.nodes < LIBRARY_NODES) arguments->world.services[arguments->world.nodes] = arguments->service;
    return path_read(text, arguments->world.addresses, &arguments->world.nodes);
}

static bool port_read(const char *text, struct library_arguments *arguments) {
    return arguments->ports < LIBRARY_NODES &&
           small_read(text, UINT16_MAX, &arguments->world.ports[arguments->ports++]);
}

static bool form_take(const char *text, struct library_settings *world) {
    if (world->form_count == OFFER_FORMS) return false;
    world->forms[world->form_count++] = text;
    return true;
}

static const struct option OPTIONS[] = {{"adapter", required_argument, NULL, 'a'},
                                        {"service", required_argument, NULL, 'V'},
                                        {"node", required_argument, NULL, 'n'},
                                        {"at", required_argument, NULL, 'A'},
                                        {"master", required_argument, NULL, 'M'},
                                        {"clock", required_argument, NULL, 'C'},
                                        {"start", required_argument, NULL, 'C'},
                                        {"directory", required_argument, NULL, 'D'},
                                        {"lease-ms", required_argument, NULL, 'L'},
                                        {"permits", required_argument, NULL, 'p'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"form", required_argument, NULL, 'f'},
                                        {"require", required_argument, NULL, 'r'},
                                        {"fault", required_argument, NULL, 'F'},
                                        {"faults-total", required_argument, NULL, 'N'},
                                        {"most", required_argument, NULL, '3'},
                                        {"session", required_argument, NULL, 'S'},
                                        {"short-session", required_argument, NULL, 'O'},
                                        {"short-sessions", required_argument, NULL, 'o'},
                                        {"first-session", required_argument, NULL, '1'},
                                        {"stride", required_argument, NULL, '2'},
                                        {"whole-sessions", no_argument, NULL, 'w'},
                                        {"seconds", required_argument, NULL, '4'},
                                        {"shrink", required_argument, NULL, '5'},
                                        {"keep-going", no_argument, NULL, 'g'},
                                        {"shared", required_argument, NULL, '6'},
                                        {"digests", required_argument, NULL, '7'},
                                        {"replay", required_argument, NULL, '8'},
                                        {"number", required_argument, NULL, '9'},
                                        {"hello", no_argument, NULL, 'h'},
                                        {0}};

static bool library_option_take(struct library_arguments *arguments, int option, char *text) {
    struct library_settings *world = &arguments->world;
    struct library_search_settings *search = &arguments->search;
    switch (option) {
    case 'a': return (world->program = text) != NULL;
    case 'V': return (arguments->service = server_kind_named(text)) != NULL;
    case 'n': return node_read(text, arguments);
    case 'A': return port_read(text, arguments);
    case 'M': return (world->master = text) != NULL;
    case 'C': return path_read(text, world->starts, &arguments->starts);
    case 'D': return (world->directory = text) != NULL;
    case 'L': return time_read(text, 1, &world->lease_ms);
    case 'p': return small_read(text, 1000, &world->permits);
    case 's': return number_read(text, 0, &search->seed);
    case 'f': return form_take(text, world);
    case 'r': return require_read(text, &search->required);
    case 'F': return fault_read(text, &search->budget);
    case 'N': return small_read(text, LIBRARY_FAULTS_MOST, &search->budget.total);
    case 'O': return number_read(text, 1, &search->short_session);
    case 'o': return number_read(text, 0, &search->short_sessions);
    case '1': return number_read(text, 0, &search->first_session);
    case '2': return number_read(text, 1, &search->stride);
    case 'w': return search->whole_sessions = true;
    case '3': return number_read(text, 0, &search->most);
    case 'S': return number_read(text, 1, &search->session);
    case '4': return time_read(text, 0, &search->seconds);
    case '5': return time_read(text, 0, &search->shrink_runs);
    case 'g': return search->keep_going = true;
    case '6': return (arguments->shared = text) != NULL;
    case '7': return (arguments->digests = text) != NULL;
    case '8': return (arguments->replay = text) != NULL;
    case '9': return number_read(text, 0, &arguments->number);
    case 'h': return arguments->hello = true;
    default: return false;
    }
}

static bool options_parse(int argc, char **argv, struct library_arguments *arguments) {
    for (int option; (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;)
        if (!library_option_take(arguments, option, optarg)) {
            fprintf(stderr, "explore-library: bad value or option: %s\n", optarg ? optarg : argv[optind - 1]);
            return false;
        }
    const struct library_settings *world = &arguments->world;
    arguments->world.seed = arguments->search.seed;
    bool whole = world->program && world->directory && world->nodes && world->nodes == arguments->starts &&
                 (!arguments->ports || world->nodes == arguments->ports) && optind == argc;
    if (!whole) fprintf(stderr, "explore-library: adapter, directory, and what belongs to each node are required\n");
    return whole;
}

/* --- a search --- */

static void library_progress_print(const struct library_search *search) {
    library_print_line(json_pack("{s:o}", "progress", library_tally_json(search)));
}

static int unplayed(const struct library_search *search) {
    fprintf(stderr, "explore-library: %s\n",
            search->world->reason[0] ? search->world->reason : search->tally.unplayed_reason);
    return STATUS_INCONCLUSIVE;
}

static json_t *events_json(const struct library_search *search, const struct call_event *events, size_t count) {
    return library_events_json(events, count, search->world->settings.nodes);
}

static void found_set(struct library_search *search, json_t *done) {
    static struct library_schedule control;
    uint64_t seed = library_search_seed(search->settings->seed, search->found_number);
    bool anew;
    json_object_set_new(done, "number", json_integer((json_int_t)search->found_number));
    json_object_set_new(done, "found", library_schedule_json(&search->found));
    library_shrink(search, seed, &anew);
    json_object_set_new(done, "anew", json_boolean(anew));
    json_object_set_new(done, "smallest", library_schedule_json(&search->found));
    json_object_set_new(done, "breaks", library_promises_json(search->found_outcome.promises));
    json_object_set_new(done, "broken", library_broken_json(&search->found_outcome));
    const struct call_event *events = anew ? search->world->events : search->found_events; /* of its last replay */
    size_t count = anew ? search->world->event_count : search->found_event_count;
    json_object_set_new(done, "events", events_json(search, events, count));
    if (library_control(search, seed, &control)) json_object_set_new(done, "control", library_schedule_json(&control));
}

static int library_explore(struct library_search *search) {
    int64_t began_ns = clock_real_mono_ns();
    bool found = library_search_run(search, library_progress_print);
    int64_t took_ns = clock_real_mono_ns() - began_ns;
    if (search->tally.schedules == 0 && search->tally.unplayed > 0) return unplayed(search);
    json_t *done = json_pack("{s:o,s:o,s:I,s:o}", "done", library_tally_json(search), "offer",
                             library_offer_json(&search->world->offer), "took_ns", (json_int_t)took_ns, "groups",
                             library_groups_json(&search->tally));
    bool first = found && (!search->shared || atomic_load(&search->shared->violated) == search->found_number);
    if (first) found_set(search, done);
    library_print_line(done);
    return found ? STATUS_VIOLATED : STATUS_HOLDS;
}

/* --- a replay --- */

static bool line_read(const char *line, struct library_schedule *schedule, const char **reason) {
    if (strncmp(line, "before ", 7) != 0) return workload_line_read(&schedule->workload, line, reason);
    *reason = "there are too many lines";
    return schedule->count < LIBRARY_DEVIATIONS &&
           library_deviation_read(line, &schedule->deviations[schedule->count++], reason);
}

static bool library_lines_read(const char *path, struct library_schedule *schedule) {
    FILE *file = fopen(path, "re");
    char line[2 * WORKLOAD_LINE];
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    for (int count = 1; fgets(line, sizeof line, file); count++) {
        const char *reason;
        line[strcspn(line, "\n")] = '\0';
        if (line_read(line, schedule, &reason)) continue;
        library_print_line(json_pack("{s:i,s:s}", "line", count, "reason", reason));
        fclose(file);
        return false;
    }
    fclose(file);
    return true;
}

static int library_schedule_replay(struct library_search *search, const struct library_arguments *arguments) {
    static struct library_schedule schedule;
    static bool used[LIBRARY_DEVIATIONS];
    if (!library_lines_read(arguments->replay, &schedule)) return STATUS_BAD;
    uint64_t seed = library_search_seed(search->settings->seed, arguments->number);
    struct library_outcome outcome = library_search_replay(search, &schedule, seed, true, used);
    if (!outcome.played) return unplayed(search);
    for (int each = 0; each < schedule.count; each++) {
        if (used[each]) continue;
        library_print_line(
            json_pack("{s:i,s:s}", "line", workload_calls(&schedule.workload) + each + 1, "reason",
                      "this never comes up, or cannot happen then: the schedule is for another library or "
                      "version, or was changed by hand"));
        return STATUS_BAD;
    }
    library_print_line(json_pack("{s:I,s:o,s:o,s:o,s:o,s:I}", "steps", (json_int_t)outcome.steps, "breaks",
                                 library_promises_json(outcome.promises), "broken", library_broken_json(&outcome),
                                 "events", events_json(search, search->world->events, search->world->event_count),
                                 "offer", library_offer_json(&search->world->offer), "digest",
                                 (json_int_t)(outcome.digest >> 1)));
    return outcome.promises ? STATUS_VIOLATED : STATUS_HOLDS;
}

/* Maps a file that other processes map, too; nothing without a path. False: the reason is on standard error. */
static bool library_file_map(const char *path, size_t least, void *map) {
    if (!path) return true;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t length = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    bool whole = length > 0 && (uint64_t)length >= least;
    void *mapped = whole ? mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED)
        fprintf(stderr, "explore-library: %s: %s\n", path, fd >= 0 && !whole ? "it is too short" : strerror(errno));
    if (fd >= 0) close(fd);
    if (mapped != MAP_FAILED) memcpy(map, &mapped, sizeof mapped);
    return mapped != MAP_FAILED;
}

int main(int argc, char **argv) {
    static struct library_world world;
    static struct library_search search;
    static struct library_arguments arguments = {
        .service = &REDIS_KIND,
        .world = {.lease_ms = 2000, .permits = 2},
        .search = {.required = UINT32_MAX, .most = UINT64_MAX, .shrink_runs = SHRINK_RUNS}};
    arguments.search.session = arguments.search.short_session = arguments.search.stride = 1;
    if (!options_parse(argc, argv, &arguments)) return STATUS_BAD;
    uint64_t schedules = arguments.search.most;
    size_t digests =
        arguments.digests && schedules < SIZE_MAX / sizeof *search.digests ? schedules * sizeof *search.digests : 0;
    search.world = &world;
    search.settings = &arguments.search;
    if (!library_file_map(arguments.shared, sizeof *search.shared, &search.shared) ||
        !library_file_map(arguments.digests, digests, &search.digests))
        return STATUS_BAD;
    int status = STATUS_INCONCLUSIVE;
    if (!library_world_open(&world, &arguments.world)) fprintf(stderr, "explore-library: %s\n", world.reason);
    else if (arguments.hello) library_print_line(library_offer_json(&world.offer)), status = STATUS_HOLDS;
    else status = arguments.replay ? library_schedule_replay(&search, &arguments) : library_explore(&search);
    library_search_close(&search);
    library_world_close(&world);
    return status;
}
