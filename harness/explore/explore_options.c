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
#define TIME_MOST_MS INT64_C(1000000000000)

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

/* --- values --- */

static bool number(const char *text, int64_t least, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= least;
}

static bool small(const char *text, int least, int most, int *value) {
    int64_t wide;
    if (!number(text, least, &wide) || wide > most) return false;
    *value = (int)wide;
    return true;
}

static bool unsigned_number(const char *text, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool option_list_add(struct option_list *list, int64_t most, const char *text) {
    if (list->count == most) return false;
    list->of[list->count++] = text;
    return true;
}

/* Only locks on redis-servers can be explored. */
static bool lock_take(char *name, struct explore_arguments *arguments) {
    arguments->lock.lock = lock_find(name);
    return arguments->lock.lock && arguments->lock.lock->service == LOCK_SERVICE_REDIS;
}

static bool plugin_take(char *path, struct explore_arguments *arguments) {
    char reason[PLUGIN_REASON];
    if (!plugin_load(path, &plugin, reason)) plugin_refuse(reason);
    arguments->lock.lock = plugin.lock;
    arguments->search.before_each = explore_plugin_check;
    signal(SIGALRM, plugin_late);
    return plugin.lock->service == LOCK_SERVICE_REDIS;
}

static bool store_take(char *mode, struct explore_arguments *arguments) {
    return resource_mode_find(mode, &arguments->lock.store);
}

static bool service_take(char *name, struct explore_arguments *arguments) {
    return (arguments->service = server_kind_named(name)) != NULL;
}

static bool node_address_take(char *address, struct explore_arguments *arguments) {
    int count = arguments->nodes.count;
    if (count < LIBRARY_NODES) arguments->adapter.services[count] = arguments->service;
    return option_list_add(&arguments->nodes, WORLD_SERVERS * WORLD_NODES, address);
}

static bool port_take(char *port, struct explore_arguments *arguments) {
    return arguments->port_count < LIBRARY_NODES &&
           small(port, 1, UINT16_MAX, &arguments->adapter.ports[arguments->port_count++]);
}

static bool strategy_take(char *name, struct explore_arguments *arguments) {
    static const char *const NAMES[] = {"uniform", "pct", "usual", "exhaustive", "novelty", "exchange", "portfolio"};
    enum { STRATEGY_NAMES = sizeof NAMES / sizeof NAMES[0] };
    unsigned each = 0;
    while (each < STRATEGY_NAMES && strcmp(name, NAMES[each]) != 0) each++;
    arguments->search.strategy = (enum strategy_kind)each;
    return each < STRATEGY_NAMES;
}

/* --- options --- */

enum option_value { VALUE_OTHER, VALUE_FLAG, VALUE_TEXT, VALUE_INT, VALUE_LONG, VALUE_UNSIGNED, VALUE_LIST };

struct option_row {
    const char *name;
    enum option_value value;
    size_t field;                                                  /* of struct explore_arguments */
    int64_t least, most;                                           /* of a number; of a list its length */
    bool (*take)(char *text, struct explore_arguments *arguments); /* of VALUE_OTHER; false: the value is wrong */
};

#define FIELD(member) offsetof(struct explore_arguments, member)
#define OTHER(name, take)                                                                                              \
    { name, VALUE_OTHER, 0, 0, 0, take }
#define FLAG(name, member)                                                                                             \
    { name, VALUE_FLAG, FIELD(member), 0, 0, NULL }
#define TEXT(name, member)                                                                                             \
    { name, VALUE_TEXT, FIELD(member), 0, 0, NULL }
#define INT(name, member, least, most)                                                                                 \
    { name, VALUE_INT, FIELD(member), least, most, NULL }
#define LONG(name, member, least, most)                                                                                \
    { name, VALUE_LONG, FIELD(member), least, most, NULL }
#define UNSIGNED(name, member, least)                                                                                  \
    { name, VALUE_UNSIGNED, FIELD(member), least, 0, NULL }
#define LIST(name, member, most)                                                                                       \
    { name, VALUE_LIST, FIELD(member), 0, most, NULL }

static const struct option_row ROWS[] = {
    /* A C lock, in the simulation (harness/simulation): struct world_settings */
    OTHER("lock", lock_take),
    OTHER("plugin", plugin_take),
    INT("clients", lock.clients, 1, WORLD_CLIENTS),
    OTHER("store", store_take),
    LONG("wait-ms", lock.wait_ms, -1, TIME_MOST_MS),
    LONG("work-ms", lock.work_ms, 0, TIME_MOST_MS),
    LONG("turns", lock.turns, 1, INT64_MAX),
    FLAG("fixed-lease", lock.fixed_lease),
    FLAG("extends", lock.extends),
    INT("varied", lock.varied, 0, WORLD_VARIES_ALL),
    FLAG("checks-validity", lock.checks_validity),
    /* Replicas of each node: the first ones follow the nodes, then come the second ones. */
    INT("replicas", lock.replicas, 1, WORLD_REPLICAS),
    /* Judges liveness: schedules end quietly, and a free lock is claimed within so long. */
    LONG("bound-ms", lock.bound_ms, 1, TIME_MOST_MS),
    LONG("calm-bound-ms", lock.calm_bound_ms, 1, TIME_MOST_MS),

    /* A library in hosted programs (harness/library; docs/adapters.md, protocol 2): struct library_settings */
    TEXT("adapter", adapter.program),
    /* An application (harness/application), and its database on PostgreSQL. */
    TEXT("app", app),
    TEXT("database", adapter.database),
    /* What the next servers are: redis without it. */
    OTHER("service", service_take),
    /* The port that other servers name for this one; repeated for each server, or left out. */
    OTHER("at", port_take),
    TEXT("master", adapter.master),
    LIST("form", forms, OFFER_FORMS),
    /* Prints what the library offers. */
    FLAG("hello", hello),

    /* A server: its unix socket and its clock page, or, of a hosted one, its address (library_server.h) and the program
     * that starts it. Both are repeated for each server. */
    OTHER("node", node_address_take),
    LIST("clock", clocks, WORLD_SERVERS *WORLD_NODES),
    LIST("start", clocks, WORLD_SERVERS *WORLD_NODES),
    TEXT("directory", directory), /* for histories, sockets and logs */
    LONG("lease-ms", lease_ms, 1, TIME_MOST_MS),
    INT("permits", permits, 1, 1000000),

    /* PROPERTY[/SORT],...: what a schedule must not violate; all promises of a library without it. With fairness, the
     * history of a lock has order_ms, and some clients give up sooner than others. */
    TEXT("require", require),
    /* The same, of schedules with one fault at most, and none that lasts. */
    TEXT("require-steady", require_steady),
    /* KIND[=N]: at most N faults of this kind in a schedule. */
    LIST("fault", faults, CHOICE_KINDS),
    /* The same, of a library: only in the turns that have rare ones. */
    LIST("rare-fault", rare_faults, CHOICE_KINDS),
    INT("faults-total", search.budget.total, 1, STRATEGY_FAULTS),
    FLAG("spare-store", search.budget.spares_store),
    OTHER("strategy", strategy_take),
    INT("deviations", search.deviations, 1, STRATEGY_FAULTS),
    UNSIGNED("seed", search.seed, 0),
    UNSIGNED("first", search.first, 0),
    UNSIGNED("most", search.most, 0),
    UNSIGNED("session", search.session, 1),
    UNSIGNED("short-session", search.short_session, 1),
    UNSIGNED("short-sessions", search.short_sessions, 0),
    UNSIGNED("first-session", search.first_session, 0),
    UNSIGNED("stride", search.stride, 1),
    LONG("seconds", search.seconds, 0, INT64_MAX),
    FLAG("whole-sessions", search.whole_sessions),
    FLAG("keep-going", search.keep_going),
    LONG("shrink", search.shrink_runs, 0, INT64_MAX),
    TEXT("shared", shared), /* struct search */
    TEXT("digests", digests),
    /* Replays the schedule in a file, which search number N has found. */
    TEXT("replay", replay),
    LONG("number", number, 0, INT64_MAX),
};
enum { OPTIONS = sizeof ROWS / sizeof ROWS[0] };
_Static_assert(OPTIONS <= '?', "getopt_long answers '?' to an unknown option");

static bool option_take(const struct option_row *row, char *text, struct explore_arguments *arguments) {
    void *field = (char *)arguments + row->field;
    switch (row->value) {
    case VALUE_FLAG: return *(bool *)field = true;
    case VALUE_TEXT: return memcpy(field, &text, sizeof text);
    case VALUE_INT: return small(text, (int)row->least, (int)row->most, field);
    case VALUE_LONG: return number(text, row->least, field) && *(int64_t *)field <= row->most;
    case VALUE_UNSIGNED: return unsigned_number(text, field) && *(uint64_t *)field >= (uint64_t)row->least;
    case VALUE_LIST: return option_list_add(field, row->most, text);
    default: return row->take(text, arguments);
    }
}

bool explore_options_parse(int argc, char **argv, struct explore_arguments *arguments) {
    struct option options[OPTIONS + 1] = {0};
    for (int each = 0; each < OPTIONS; each++) {
        int has = ROWS[each].value == VALUE_FLAG ? no_argument : required_argument;
        options[each] = (struct option){.name = ROWS[each].name, .has_arg = has, .val = each};
    }
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        if (option >= OPTIONS || !option_take(&ROWS[option], optarg, arguments)) {
            fprintf(stderr, "explore: bad value or option: %s\n", optarg ? optarg : argv[optind - 1]);
            return false;
        }
    if (optind != argc) fprintf(stderr, "explore: what is %s?\n", argv[optind]);
    return optind == argc;
}

/* --- what belongs to a lock, or to an adapter --- */

static bool lock_whole(struct explore_arguments *arguments) {
    struct world_settings *lock = &arguments->lock;
    int each = 1 + lock->replicas; /* servers a node */
    int count = arguments->nodes.count;
    if (!lock->lock || !lock->clients || count % each != 0 || count / each > WORLD_NODES) {
        fprintf(stderr, "explore: a lock and clients are required, and as many nodes as belong together\n");
        return false;
    }
    lock->nodes = count / each;
    memcpy(lock->sockets, arguments->nodes.of, sizeof lock->sockets);
    memcpy(lock->clocks, arguments->clocks.of, sizeof lock->clocks);
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
    int count = arguments->nodes.count;
    if (count > LIBRARY_NODES || (arguments->port_count && arguments->port_count != count)) {
        fprintf(stderr, "explore: there are too many nodes, or ports are given for some only\n");
        return false;
    }
    adapter->nodes = count;
    memcpy(adapter->addresses, arguments->nodes.of, sizeof adapter->addresses);
    memcpy(adapter->starts, arguments->clocks.of, sizeof adapter->starts);
    memcpy(adapter->forms, arguments->forms.of, sizeof adapter->forms);
    adapter->form_count = arguments->forms.count;
    if (arguments->lease_ms) adapter->lease_ms = arguments->lease_ms;
    if (arguments->permits) adapter->permits = arguments->permits;
    adapter->directory = arguments->directory;
    adapter->seed = arguments->search.seed;
    return true;
}

bool explore_options_whole(struct explore_arguments *arguments) {
    if (!arguments->directory || !arguments->nodes.count || arguments->nodes.count != arguments->clocks.count) {
        fprintf(stderr, "explore: a directory, and a clock or a start for each node are required\n");
        return false;
    }
    return arguments->adapter.program || arguments->app ? adapter_whole(arguments) : lock_whole(arguments);
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
static bool fault_read(const char *text, const struct search_world *world, bool rare, struct fault_budget *budget) {
    char name[48];
    size_t length = strcspn(text, "=");
    int most = STRATEGY_FAULTS;
    if (length >= sizeof name || (text[length] && !small(text + length + 1, 1, STRATEGY_FAULTS, &most))) return false;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    enum choice_kind kind = choice_fault_named(world->space, name);
    if (kind == CHOICE_NONE) return false;
    budget->most[kind] = most;
    budget->rare |= (uint32_t)rare << kind;
    return true;
}

static bool faults_read(const struct option_list *faults, const struct search_world *world, bool rare,
                        struct fault_budget *budget) {
    for (int each = 0; each < faults->count; each++)
        if (!fault_read(faults->of[each], world, rare, budget)) {
            fprintf(stderr, "explore: bad value or option: %s\n", faults->of[each]);
            return false;
        }
    return true;
}

bool explore_names_read(struct explore_arguments *arguments, const struct search_world *world) {
    struct search_settings *search = &arguments->search;
    arguments->lock.in_order = arguments->require && strstr(arguments->require, "fairness");
    for (int each = 0; each < world->property_count && world->has_programs && !arguments->require; each++)
        search->required[each] = UINT32_MAX;
    if (!require_read(arguments->require, world, search->required) ||
        !require_read(arguments->require_steady, world, search->steadily))
        return false;
    return faults_read(&arguments->faults, world, false, &search->budget) &&
           faults_read(&arguments->rare_faults, world, true, &search->budget);
}
