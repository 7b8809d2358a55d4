#include "harness/explorer/explore_options.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/client/plugin.h"

/* For one schedule, which takes milliseconds. The alarm is set again and again, so that a machine that stood still has
 * used up one of its periods. */
enum { PLUGIN_PERIOD_S = 2, PLUGIN_PERIODS = 5 };

/* No lease, wait, work or bound is longer, in ms: 31 years. Sums of a few of them fit into 64 bits of nanoseconds. */
static const int64_t TIME_MOST_MS = 1000000000000;

static const char *const STRATEGY_NAMES[] = {"uniform", "pct", "usual", "exhaustive", "novelty", "portfolio"};

/* --- a plug-in --- */

static struct plugin plugin;
static const char PLUGIN_LATE[] = "it did not come back within 10 s in one schedule\n";

static volatile sig_atomic_t plugin_periods; /* that the schedule has used up */

static void plugin_late(int signal) {
    (void)signal;
    if (++plugin_periods < PLUGIN_PERIODS) {
        alarm(PLUGIN_PERIOD_S);
        return;
    }
    if (write(STDERR_FILENO, PLUGIN_LATE, sizeof PLUGIN_LATE - 1) < 0) _exit(STATUS_GAVE_UP);
    _exit(STATUS_INCONCLUSIVE);
}

_Noreturn static void plugin_refuse(const char *reason) {
    fprintf(stderr, "%s\n", reason);
    exit(STATUS_GAVE_UP);
}

/* All clients of all schedules are coroutines of this process. A static variable that one client writes would be seen
 * by the others and by later schedules, and the order of schedules would matter. */
void explore_plugin_check(void) {
    size_t offset;
    char reason[PLUGIN_REASON];
    if (!plugin.lock) return;
    plugin_periods = 0;
    alarm(PLUGIN_PERIOD_S);
    if (plugin_statics_same(&plugin, &offset)) return;
    snprintf(
        reason, sizeof reason,
        "it has written to a static variable (at %#zx by `nm -n`), which all clients of the explorer share: what a "
        "client keeps belongs into lock->state",
        offset);
    plugin_refuse(reason);
}

static bool plugin_option(const char *path, struct explore_arguments *arguments) {
    char reason[PLUGIN_REASON];
    if (!plugin_load(path, &plugin, reason)) plugin_refuse(reason);
    arguments->world.lock = plugin.lock;
    arguments->search.before_each = explore_plugin_check;
    signal(SIGALRM, plugin_late);
    return plugin.lock->service == LOCK_SERVICE_REDIS;
}

/* --- values --- */

static bool number(const char *text, int64_t least, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= least;
}

static bool duration(const char *text, int64_t least_ms, int64_t *value_ms) {
    return number(text, least_ms, value_ms) && *value_ms <= TIME_MOST_MS;
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
    char name[48];
    const char *equals = strchr(text, '=');
    if (!equals || (size_t)(equals - text) >= sizeof name) return false;
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    enum choice_kind kind = choice_fault_named(name);
    return kind != CHOICE_NONE && small(equals + 1, STRATEGY_FAULTS, &budget->most[kind]);
}

static bool strategy_option(const char *text, enum strategy_kind *strategy) {
    for (unsigned each = 0; each < sizeof STRATEGY_NAMES / sizeof STRATEGY_NAMES[0]; each++)
        if (strcmp(text, STRATEGY_NAMES[each]) == 0) {
            *strategy = (enum strategy_kind)each;
            return true;
        }
    return false;
}

/* The bit of a checker's sort, named with "-" for " "; all for an empty name, 0 for one that does not exist. */
static uint32_t sort_bits(const struct checker *checker, const char *name) {
    char sort[48];
    if (*name == '\0') return UINT32_MAX;
    for (int each = 0; checker->sorts[each]; each++) {
        snprintf(sort, sizeof sort, "%s", checker->sorts[each]);
        for (char *at = sort; *at; at++) *at = *at == ' ' ? '-' : *at;
        if (strcmp(sort, name) == 0) return (uint32_t)1 << each;
    }
    return 0;
}

/* A list of PROPERTY and PROPERTY/SORT. */
static bool require_option(char *list, uint32_t *required) {
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        uint32_t bits = 0;
        size_t length = strcspn(word, "/");
        const char *sort = word[length] ? word + length + 1 : "";
        for (int each = 0; CHECKER_TABLE[each]; each++) {
            const char *property = CHECKER_TABLE[each]->property;
            if (strlen(property) != length || strncmp(word, property, length) != 0) continue;
            bits = sort_bits(CHECKER_TABLE[each], sort);
            required[each] |= bits;
        }
        if (bits == 0) return false;
    }
    return true;
}

static bool is_required(const struct search_settings *search, const char *property) {
    for (int each = 0; CHECKER_TABLE[each]; each++)
        if (strcmp(property, CHECKER_TABLE[each]->property) == 0) return search->required[each] != 0;
    return false;
}

/* Only locks on redis-servers can be explored. */
static bool lock_option(const char *name, const struct lock_type **lock) {
    *lock = lock_find(name);
    return *lock && (*lock)->service == LOCK_SERVICE_REDIS;
}

static bool node_option(const char *text, const char **paths, int *count) {
    if (*count == WORLD_SERVERS * WORLD_NODES) return false;
    paths[(*count)++] = text;
    return true;
}

static const struct option OPTIONS[] = {{"lock", required_argument, NULL, 'l'},
                                        {"clients", required_argument, NULL, 'c'},
                                        {"store", required_argument, NULL, 'S'},
                                        {"lease-ms", required_argument, NULL, 'L'},
                                        {"wait-ms", required_argument, NULL, 'W'},
                                        {"work-ms", required_argument, NULL, 'w'},
                                        {"turns", required_argument, NULL, 't'},
                                        {"permits", required_argument, NULL, 'p'},
                                        {"fixed-lease", no_argument, NULL, 'f'},
                                        {"faults-total", required_argument, NULL, 'N'},
                                        {"spare-store", no_argument, NULL, 'O'},
                                        {"extends", no_argument, NULL, 'e'},
                                        {"varied", required_argument, NULL, 'V'},
                                        {"checks-validity", no_argument, NULL, 'v'},
                                        {"node", required_argument, NULL, 'n'},
                                        {"clock", required_argument, NULL, 'C'},
                                        {"directory", required_argument, NULL, 'D'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"require", required_argument, NULL, 'r'},
                                        {"require-steady", required_argument, NULL, 'y'},
                                        {"fault", required_argument, NULL, 'F'},
                                        {"strategy", required_argument, NULL, 'T'},
                                        {"first", required_argument, NULL, '1'},
                                        {"stride", required_argument, NULL, '2'},
                                        {"most", required_argument, NULL, '3'},
                                        {"seconds", required_argument, NULL, '4'},
                                        {"shrink", required_argument, NULL, '5'},
                                        {"shared", required_argument, NULL, '6'},
                                        {"digests", required_argument, NULL, '7'},
                                        {"replay", required_argument, NULL, '8'},
                                        {"replicas", required_argument, NULL, 'R'},
                                        {"bound-ms", required_argument, NULL, 'B'},
                                        {"deviations", required_argument, NULL, 'b'},
                                        {"number", required_argument, NULL, '9'},
                                        {"keep-going", no_argument, NULL, 'g'},
                                        {"plugin", required_argument, NULL, 'P'},
                                        {0}};

static bool varied_option(const char *text, unsigned *varied) {
    int64_t value;
    if (!number(text, 0, &value) || value > WORLD_VARIES_ALL) return false;
    *varied = (unsigned)value;
    return true;
}

static bool option_take(struct explore_arguments *arguments, int option, char *text) {
    struct world_settings *world = &arguments->world;
    struct search_settings *search = &arguments->search;
    switch (option) {
    case 'l': return lock_option(text, &world->lock);
    case 'P': return plugin_option(text, arguments);
    case 'c': return small(text, WORLD_CLIENTS, &world->clients);
    case 'S': return resource_mode_find(text, &world->store);
    case 'L': return duration(text, 1, &world->lease_ms);
    case 'W': return duration(text, -1, &world->wait_ms);
    case 'w': return duration(text, 0, &world->work_ms);
    case 't': return number(text, 1, &world->turns);
    case 'p': return number(text, 1, &world->permits);
    case 'f': return world->fixed_lease = true;
    case 'e': return world->extends = true;
    case 'N': return small(text, STRATEGY_FAULTS, &search->budget.total);
    case 'O': return search->budget.spares_store = true;
    case 'V': return varied_option(text, &world->varied);
    case 'v': return world->checks_validity = true;
    case 'n': return node_option(text, world->sockets, &world->nodes);
    case 'C': return node_option(text, world->clocks, &arguments->clocks);
    case 'D': return (arguments->directory = text) != NULL;
    case 's': return unsigned_number(text, &search->seed);
    case 'r': return require_option(text, search->required);
    case 'y': return require_option(text, search->steadily);
    case 'F': return fault_option(text, &search->budget);
    case 'T': return strategy_option(text, &search->strategy);
    case 'R': return small(text, WORLD_REPLICAS, &world->replicas);
    case 'B': return duration(text, 1, &world->bound_ms);
    case 'b': return small(text, STRATEGY_FAULTS, &search->deviations);
    case 'g': return search->keep_going = true;
    case '1': return unsigned_number(text, &search->first);
    case '2': return unsigned_number(text, &search->stride) && search->stride > 0;
    case '3': return unsigned_number(text, &search->most);
    case '4': return number(text, 0, &search->seconds);
    case '5': return number(text, 0, &search->shrink_runs);
    case '6': return (arguments->shared = text) != NULL;
    case '7': return (arguments->digests = text) != NULL;
    case '8': return (arguments->replay = text) != NULL;
    case '9': return number(text, 0, &arguments->number);
    default: return false;
    }
}

bool explore_options_parse(int argc, char **argv, struct explore_arguments *arguments) {
    for (int option; (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;)
        if (!option_take(arguments, option, optarg)) {
            fprintf(stderr, "explore: bad value or option: %s\n", optarg ? optarg : argv[optind - 1]);
            return false;
        }
    struct world_settings *world = &arguments->world;
    int each = 1 + world->replicas; /* servers a node */
    bool whole = world->lock && world->clients && world->nodes && world->nodes == arguments->clocks &&
                 world->nodes % each == 0 && world->nodes / each <= WORLD_NODES && arguments->directory &&
                 optind == argc;
    if (!whole) {
        fprintf(stderr, "explore: lock, clients, directory and a clock for each node are required\n");
        return false;
    }
    world->nodes /= each;
    snprintf(arguments->history, sizeof arguments->history, "%s/history", arguments->directory);
    snprintf(arguments->sink, sizeof arguments->sink, "%s/sink", arguments->directory);
    arguments->world.history = arguments->history;
    arguments->world.sink = arguments->sink;
    arguments->world.seed = arguments->search.seed;
    arguments->world.in_order = is_required(&arguments->search, "fairness");
    return true;
}
