#include "harness/explore/explore_options.h"

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
    arguments->lock.lock = plugin.lock;
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

static bool strategy_option(const char *text, enum strategy_kind *strategy) {
    for (unsigned each = 0; each < sizeof STRATEGY_NAMES / sizeof STRATEGY_NAMES[0]; each++)
        if (strcmp(text, STRATEGY_NAMES[each]) == 0) {
            *strategy = (enum strategy_kind)each;
            return true;
        }
    return false;
}

/* Only locks on redis-servers can be explored. */
static bool lock_option(const char *name, const struct lock_type **lock) {
    *lock = lock_find(name);
    return *lock && (*lock)->service == LOCK_SERVICE_REDIS;
}

static bool path_option(const char *text, const char **paths, int *count) {
    if (*count == WORLD_SERVERS * WORLD_NODES) return false;
    paths[(*count)++] = text;
    return true;
}

static bool node_option(const char *text, struct explore_arguments *arguments) {
    if (arguments->node_count < LIBRARY_NODES) arguments->adapter.services[arguments->node_count] = arguments->service;
    return path_option(text, arguments->nodes, &arguments->node_count);
}

static bool port_option(const char *text, struct explore_arguments *arguments) {
    return arguments->port_count < LIBRARY_NODES &&
           small(text, UINT16_MAX, &arguments->adapter.ports[arguments->port_count++]);
}

static bool form_option(const char *text, struct library_settings *adapter) {
    if (adapter->form_count == OFFER_FORMS) return false;
    adapter->forms[adapter->form_count++] = text;
    return true;
}

static bool fault_option(const char *text, struct explore_arguments *arguments) {
    if (arguments->fault_count == CHOICE_KINDS) return false;
    arguments->faults[arguments->fault_count++] = text;
    return true;
}

/* What stands for an option that has only a long name. */
enum option_letter {
    OPTION_LOCK = 1,
    OPTION_PLUGIN,
    OPTION_ADAPTER,
    OPTION_CLIENTS,
    OPTION_STORE,
    OPTION_LEASE,
    OPTION_WAIT,
    OPTION_WORK,
    OPTION_TURNS,
    OPTION_PERMITS,
    OPTION_FIXED_LEASE,
    OPTION_FAULT,
    OPTION_FAULTS_TOTAL,
    OPTION_SPARE_STORE,
    OPTION_EXTENDS,
    OPTION_VARIED,
    OPTION_CHECKS_VALIDITY,
    OPTION_SERVICE,
    OPTION_NODE,
    OPTION_CLOCK,
    OPTION_AT,
    OPTION_MASTER,
    OPTION_REPLICAS,
    OPTION_FORM,
    OPTION_DIRECTORY,
    OPTION_SEED,
    OPTION_REQUIRE,
    OPTION_REQUIRE_STEADY,
    OPTION_STRATEGY,
    OPTION_DEVIATIONS,
    OPTION_FIRST,
    OPTION_MOST,
    OPTION_SESSION,
    OPTION_SHORT_SESSION,
    OPTION_SHORT_SESSIONS,
    OPTION_FIRST_SESSION,
    OPTION_STRIDE,
    OPTION_SECONDS,
    OPTION_WHOLE_SESSIONS,
    OPTION_KEEP_GOING,
    OPTION_SHRINK,
    OPTION_BOUND,
    OPTION_SHARED,
    OPTION_DIGESTS,
    OPTION_REPLAY,
    OPTION_NUMBER,
    OPTION_HELLO
};

static const struct option OPTIONS[] = {{"lock", required_argument, NULL, OPTION_LOCK},
                                        {"plugin", required_argument, NULL, OPTION_PLUGIN},
                                        {"adapter", required_argument, NULL, OPTION_ADAPTER},
                                        {"clients", required_argument, NULL, OPTION_CLIENTS},
                                        {"store", required_argument, NULL, OPTION_STORE},
                                        {"lease-ms", required_argument, NULL, OPTION_LEASE},
                                        {"wait-ms", required_argument, NULL, OPTION_WAIT},
                                        {"work-ms", required_argument, NULL, OPTION_WORK},
                                        {"turns", required_argument, NULL, OPTION_TURNS},
                                        {"permits", required_argument, NULL, OPTION_PERMITS},
                                        {"fixed-lease", no_argument, NULL, OPTION_FIXED_LEASE},
                                        {"fault", required_argument, NULL, OPTION_FAULT},
                                        {"faults-total", required_argument, NULL, OPTION_FAULTS_TOTAL},
                                        {"spare-store", no_argument, NULL, OPTION_SPARE_STORE},
                                        {"extends", no_argument, NULL, OPTION_EXTENDS},
                                        {"varied", required_argument, NULL, OPTION_VARIED},
                                        {"checks-validity", no_argument, NULL, OPTION_CHECKS_VALIDITY},
                                        {"service", required_argument, NULL, OPTION_SERVICE},
                                        {"node", required_argument, NULL, OPTION_NODE},
                                        {"clock", required_argument, NULL, OPTION_CLOCK},
                                        {"start", required_argument, NULL, OPTION_CLOCK},
                                        {"at", required_argument, NULL, OPTION_AT},
                                        {"master", required_argument, NULL, OPTION_MASTER},
                                        {"replicas", required_argument, NULL, OPTION_REPLICAS},
                                        {"form", required_argument, NULL, OPTION_FORM},
                                        {"directory", required_argument, NULL, OPTION_DIRECTORY},
                                        {"seed", required_argument, NULL, OPTION_SEED},
                                        {"require", required_argument, NULL, OPTION_REQUIRE},
                                        {"require-steady", required_argument, NULL, OPTION_REQUIRE_STEADY},
                                        {"strategy", required_argument, NULL, OPTION_STRATEGY},
                                        {"deviations", required_argument, NULL, OPTION_DEVIATIONS},
                                        {"first", required_argument, NULL, OPTION_FIRST},
                                        {"most", required_argument, NULL, OPTION_MOST},
                                        {"session", required_argument, NULL, OPTION_SESSION},
                                        {"short-session", required_argument, NULL, OPTION_SHORT_SESSION},
                                        {"short-sessions", required_argument, NULL, OPTION_SHORT_SESSIONS},
                                        {"first-session", required_argument, NULL, OPTION_FIRST_SESSION},
                                        {"stride", required_argument, NULL, OPTION_STRIDE},
                                        {"seconds", required_argument, NULL, OPTION_SECONDS},
                                        {"whole-sessions", no_argument, NULL, OPTION_WHOLE_SESSIONS},
                                        {"keep-going", no_argument, NULL, OPTION_KEEP_GOING},
                                        {"shrink", required_argument, NULL, OPTION_SHRINK},
                                        {"bound-ms", required_argument, NULL, OPTION_BOUND},
                                        {"shared", required_argument, NULL, OPTION_SHARED},
                                        {"digests", required_argument, NULL, OPTION_DIGESTS},
                                        {"replay", required_argument, NULL, OPTION_REPLAY},
                                        {"number", required_argument, NULL, OPTION_NUMBER},
                                        {"hello", no_argument, NULL, OPTION_HELLO},
                                        {0}};

static bool varied_option(const char *text, unsigned *varied) {
    int64_t value;
    if (!number(text, 0, &value) || value > WORLD_VARIES_ALL) return false;
    *varied = (unsigned)value;
    return true;
}

static bool world_option_take(struct explore_arguments *arguments, int option, char *text) {
    struct world_settings *lock = &arguments->lock;
    struct library_settings *adapter = &arguments->adapter;
    switch (option) {
    case OPTION_LOCK: return lock_option(text, &lock->lock);
    case OPTION_PLUGIN: return plugin_option(text, arguments);
    case OPTION_ADAPTER: return (adapter->program = text) != NULL;
    case OPTION_CLIENTS: return small(text, WORLD_CLIENTS, &lock->clients);
    case OPTION_STORE: return resource_mode_find(text, &lock->store);
    case OPTION_LEASE: return duration(text, 1, &arguments->lease_ms);
    case OPTION_WAIT: return duration(text, -1, &lock->wait_ms);
    case OPTION_WORK: return duration(text, 0, &lock->work_ms);
    case OPTION_TURNS: return number(text, 1, &lock->turns);
    case OPTION_PERMITS: return small(text, 1000000, &arguments->permits);
    case OPTION_FIXED_LEASE: return lock->fixed_lease = true;
    case OPTION_EXTENDS: return lock->extends = true;
    case OPTION_VARIED: return varied_option(text, &lock->varied);
    case OPTION_CHECKS_VALIDITY: return lock->checks_validity = true;
    case OPTION_REPLICAS: return small(text, WORLD_REPLICAS, &lock->replicas);
    case OPTION_BOUND: return duration(text, 1, &lock->bound_ms);
    case OPTION_SERVICE: return (arguments->service = server_kind_named(text)) != NULL;
    case OPTION_NODE: return node_option(text, arguments);
    case OPTION_CLOCK: return path_option(text, arguments->clocks, &arguments->clock_count);
    case OPTION_AT: return port_option(text, arguments);
    case OPTION_MASTER: return (adapter->master = text) != NULL;
    case OPTION_FORM: return form_option(text, adapter);
    case OPTION_DIRECTORY: return (arguments->directory = text) != NULL;
    case OPTION_HELLO: return arguments->hello = true;
    default: return false;
    }
}

static bool search_option_take(struct explore_arguments *arguments, int option, char *text) {
    struct search_settings *search = &arguments->search;
    switch (option) {
    case OPTION_SEED: return unsigned_number(text, &search->seed);
    case OPTION_REQUIRE: return (arguments->require = text) != NULL;
    case OPTION_REQUIRE_STEADY: return (arguments->require_steady = text) != NULL;
    case OPTION_FAULT: return fault_option(text, arguments);
    case OPTION_FAULTS_TOTAL: return small(text, STRATEGY_FAULTS, &search->budget.total);
    case OPTION_SPARE_STORE: return search->budget.spares_store = true;
    case OPTION_STRATEGY: return strategy_option(text, &search->strategy);
    case OPTION_DEVIATIONS: return small(text, STRATEGY_FAULTS, &search->deviations);
    case OPTION_FIRST: return unsigned_number(text, &search->first);
    case OPTION_MOST: return unsigned_number(text, &search->most);
    case OPTION_SESSION: return unsigned_number(text, &search->session) && search->session > 0;
    case OPTION_SHORT_SESSION: return unsigned_number(text, &search->short_session) && search->short_session > 0;
    case OPTION_SHORT_SESSIONS: return unsigned_number(text, &search->short_sessions);
    case OPTION_FIRST_SESSION: return unsigned_number(text, &search->first_session);
    case OPTION_STRIDE: return unsigned_number(text, &search->stride) && search->stride > 0;
    case OPTION_SECONDS: return number(text, 0, &search->seconds);
    case OPTION_WHOLE_SESSIONS: return search->whole_sessions = true;
    case OPTION_KEEP_GOING: return search->keep_going = true;
    case OPTION_SHRINK: return number(text, 0, &search->shrink_runs);
    case OPTION_SHARED: return (arguments->shared = text) != NULL;
    case OPTION_DIGESTS: return (arguments->digests = text) != NULL;
    case OPTION_REPLAY: return (arguments->replay = text) != NULL;
    case OPTION_NUMBER: return number(text, 0, &arguments->number);
    default: return world_option_take(arguments, option, text);
    }
}

/* --- what belongs to a lock, or to an adapter --- */

static bool lock_whole(struct explore_arguments *arguments) {
    struct world_settings *lock = &arguments->lock;
    int each = 1 + lock->replicas; /* servers a node */
    int count = arguments->node_count;
    if (!lock->lock || !lock->clients || count % each != 0 || count / each > WORLD_NODES) {
        fprintf(stderr, "explore: a lock and clients are required, and as many nodes as belong together\n");
        return false;
    }
    lock->nodes = count / each;
    memcpy(lock->sockets, arguments->nodes, sizeof lock->sockets);
    memcpy(lock->clocks, arguments->clocks, sizeof lock->clocks);
    if (arguments->lease_ms) lock->lease_ms = arguments->lease_ms;
    if (arguments->permits) lock->permits = arguments->permits;
    snprintf(arguments->history, sizeof arguments->history, "%s/history", arguments->directory);
    snprintf(arguments->sink, sizeof arguments->sink, "%s/sink", arguments->directory);
    lock->history = arguments->history;
    lock->sink = arguments->sink;
    lock->seed = arguments->search.seed;
    /* Every schedule is a session, but for what is learned from one to the next. */
    struct search_settings *search = &arguments->search;
    bool learns = search->strategy == STRATEGY_NOVELTY;
    search->session = learns ? NOVELTY_SESSION : 1;
    search->first_session = search->first / search->session;
    if (learns) search->stride = 1;
    search->whole_sessions = true;
    return true;
}

static bool adapter_whole(struct explore_arguments *arguments) {
    struct library_settings *adapter = &arguments->adapter;
    int count = arguments->node_count;
    if (count > LIBRARY_NODES || (arguments->port_count && arguments->port_count != count)) {
        fprintf(stderr, "explore: there are too many nodes, or ports are given for some only\n");
        return false;
    }
    adapter->nodes = count;
    memcpy(adapter->addresses, arguments->nodes, sizeof adapter->addresses);
    memcpy(adapter->starts, arguments->clocks, sizeof adapter->starts);
    if (arguments->lease_ms) adapter->lease_ms = arguments->lease_ms;
    if (arguments->permits) adapter->permits = arguments->permits;
    adapter->directory = arguments->directory;
    adapter->seed = arguments->search.seed;
    return true;
}

bool explore_options_parse(int argc, char **argv, struct explore_arguments *arguments) {
    for (int option; (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;)
        if (!search_option_take(arguments, option, optarg)) {
            fprintf(stderr, "explore: bad value or option: %s\n", optarg ? optarg : argv[optind - 1]);
            return false;
        }
    if (optind != argc) fprintf(stderr, "explore: what is %s?\n", argv[optind]);
    return optind == argc;
}

bool explore_options_whole(struct explore_arguments *arguments) {
    if (!arguments->directory || !arguments->node_count || arguments->node_count != arguments->clock_count) {
        fprintf(stderr, "explore: a directory, and a clock or a start for each node are required\n");
        return false;
    }
    return arguments->adapter.program ? adapter_whole(arguments) : lock_whole(arguments);
}

/* --- names --- */

/* The bit of a checker's sort, named with "-" for " "; all for an empty name, 0 for one that does not exist. */
static uint32_t sort_bits(const char *const *sorts, const char *name) {
    char sort[48];
    if (*name == '\0') return UINT32_MAX;
    for (int each = 0; sorts && sorts[each]; each++) {
        snprintf(sort, sizeof sort, "%s", sorts[each]);
        for (char *at = sort; *at; at++) *at = *at == ' ' ? '-' : *at;
        if (strcmp(sort, name) == 0) return (uint32_t)1 << each;
    }
    return 0;
}

/* A list of PROPERTY and PROPERTY/SORT. */
static bool require_read(char *list, const struct search_world *world, uint32_t *required) {
    for (char *rest, *word = list ? strtok_r(list, ",", &rest) : NULL; word; word = strtok_r(NULL, ",", &rest)) {
        uint32_t bits = 0;
        size_t length = strcspn(word, "/");
        const char *sort = word[length] ? word + length + 1 : "";
        for (int each = 0; each < world->property_count; each++) {
            const char *property = world->property_name(each);
            if (strlen(property) != length || strncmp(word, property, length) != 0) continue;
            bits = sort_bits(world->has_programs ? NULL : CHECKER_TABLE[each]->sorts, sort);
            required[each] |= bits;
        }
        if (bits == 0) {
            fprintf(stderr, "explore: bad value or option: %s\n", word);
            return false;
        }
    }
    return true;
}

/* KIND=N, or KIND: then as many as there may be of all together. */
static bool fault_read(const char *text, const struct search_world *world, struct fault_budget *budget) {
    char name[48];
    size_t length = strcspn(text, "=");
    int most = STRATEGY_FAULTS;
    if (length >= sizeof name || (text[length] && !small(text + length + 1, STRATEGY_FAULTS, &most))) return false;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    enum choice_kind kind = choice_fault_named(world->space, name);
    budget->most[kind] = most;
    return kind != CHOICE_NONE;
}

bool explore_names_read(struct explore_arguments *arguments, const struct search_world *world) {
    struct search_settings *search = &arguments->search;
    arguments->lock.in_order = arguments->require && strstr(arguments->require, "fairness");
    for (int each = 0; each < world->property_count && world->has_programs && !arguments->require; each++)
        search->required[each] = UINT32_MAX;
    if (!require_read(arguments->require, world, search->required) ||
        !require_read(arguments->require_steady, world, search->steadily))
        return false;
    for (int each = 0; each < arguments->fault_count; each++)
        if (!fault_read(arguments->faults[each], world, &search->budget)) {
            fprintf(stderr, "explore: bad value or option: %s\n", arguments->faults[each]);
            return false;
        }
    return true;
}
