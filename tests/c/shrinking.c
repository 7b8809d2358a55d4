/* shrinking: has harness/search/shrink.c make schedules smaller whose violations this program plays: a schedule
 * violates when certain deviations are in it, with a certain number of clients.
 *
 * Prints one JSON line: for each case the clients, the number of schedules that were run, and the deviations that are
 * left. Exit status: 0 printed, 2 a case cannot be read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/search/search.h"
#include "tests/c/played_world.h"

enum { LINES = 16, NO_EFFECT = 100, SEED = 7, NUMBER = 3 };
enum { WANTED = 0, OTHER = 1, UNWANTED = 2 }; /* checkers: of the first two a violation counts, the first was found */

/* A schedule violates if all lines of one of the two are in it, with so many clients (0: any number). */
struct cause {
    int clients;
    const char *lines[4];
};

static const struct shrink_case {
    const char *name;
    int clients, violates; /* violates: which checker */
    int64_t runs;
    const char *lines[LINES];
    struct cause causes[2];
} CASES[] = {
    {"two_of_eight",
     2,
     WANTED,
     1000,
     {"before client-1 1: client-2", "before client-1 2: client-2", "before client-2 3: client-1",
      "before client-1 4: client-2", "before client-2 5: client-1", "before client-1 6: client-2",
      "before client-1 7: clock", "before client-2 8: client-1"},
     {{2, {"before client-2 3: client-1", "before client-1 7: clock"}}}},
    {"all_of_three",
     2,
     WANTED,
     1000,
     {"before client-1 1: client-2", "before client-2 3: client-1", "before client-1 6: client-2"},
     {{2, {"before client-1 1: client-2", "before client-2 3: client-1", "before client-1 6: client-2"}}}},
    {"what_has_no_effect",
     2,
     WANTED,
     1000,
     {"before client-1 1: client-2", "before client-1 100: client-2", "before client-2 101: client-1"},
     {{2, {"before client-1 1: client-2"}}}},
    {"another_client_moves_up",
     4,
     WANTED,
     1000,
     {"before client-1 1: client-3", "before client-2 2: client-1", "before client-3 3: pause-client client-3 1000",
      "before client-3 4: lose-reply client-3-watchdog", "before client-4 1: client-1"},
     {{3,
       {"before client-1 1: client-2", "before client-2 3: pause-client client-2 1000",
        "before client-2 4: lose-reply client-2-watchdog"}},
      {2,
       {"before client-1 1: client-2", "before client-2 3: pause-client client-2 1000",
        "before client-2 4: lose-reply client-2-watchdog"}}}},
    {"every_name",
     2,
     WANTED,
     0,
     {"before client-1 1: client-2-watchdog", "before client-16-watchdog 2: late-1", "before late-16 3: clock",
      "before clock 4: stream-1", "before stream-1-replica-2 5: stream-8-replica-2",
      "before client-1 6: failover redis-1", "before client-1 7: stall-replica redis-8-replica-2 1",
      "before client-1 8: clock-jump redis-1 -1000000000", "before client-1 9: client-clock-jump client-2 1000000000",
      "before client-1 10: crash-server redis-8", "before client-1 11: drop-message client-2",
      "before client-1 12: quiet"},
     {{0}}},
    {"the_fault_alone",
     4,
     WANTED,
     1000,
     {"before client-1 1: client-3", "before client-4 2: client-1", "before client-3 3: pause-client client-3 1000"},
     {{2, {"before client-2 17: pause-client client-2 1000"}}}},
    {"the_fault_of_a_task_alone",
     3,
     WANTED,
     1000,
     {"before client-1 1: client-3", "before client-3 3: lose-reply client-3-watchdog"},
     {{2, {"before client-1 40: lose-reply client-1"}}}},
    {"the_fault_of_a_node_alone",
     3,
     WANTED,
     1000,
     {"before client-1 1: client-3", "before client-3 3: crash-server redis-2"},
     {{2, {"before client-2 1: crash-server redis-2"}}}},
    {"the_fault_is_too_late_alone",
     2,
     WANTED,
     1000,
     {"before client-1 1: client-2", "before client-1 41: kill-client client-1"},
     {{2, {"before client-1 41: kill-client client-1"}}}},
    {"two_faults_are_not_one",
     2,
     WANTED,
     1000,
     {"before client-1 1: kill-client client-1", "before client-2 3: kill-client client-2"},
     {{2, {"before client-1 2: kill-client client-1"}}, {2, {"before client-1 1: kill-client client-1"}}}},
    {"shorter",
     1,
     WANTED,
     1000,
     {"before client-1 1: pause-client client-1 9000"},
     {{1, {"before client-1 1: pause-client client-1 2250"}}, {1, {"before client-1 1: pause-client client-1 4500"}}}},
    {"short_enough",
     1,
     WANTED,
     1000,
     {"before client-1 1: pause-client client-1 2000"},
     {{1, {"before client-1 1: pause-client client-1 1000"}}, {1, {"before client-1 1: pause-client client-1 2000"}}}},
    {"within_its_runs",
     2,
     WANTED,
     3,
     {"before client-1 1: client-2", "before client-1 2: client-2", "before client-2 3: client-1"},
     {{2, {"before client-2 3: client-1"}}}},
    {"another_violation_is_another",
     2,
     OTHER,
     1000,
     {"before client-1 1: client-2", "before client-1 2: client-2"},
     {{2, {"before client-1 1: client-2"}}}},
    {"what_is_not_required_does_not_count",
     2,
     UNWANTED,
     1000,
     {"before client-1 1: client-2", "before client-1 2: client-2"},
     {{2, {"before client-1 1: client-2"}}}},
};

/* Invalid lines: a name with more behind it, an invalid number, a target of another kind, a duration that is missing,
 * out of range, or that the fault does not have. */
static const char *const REFUSED[] = {
    "before client-1x 1: clock",
    "before client-0 1: clock",
    "before client-33 1: clock",
    "before client- 1: clock",
    "before client-1-watchdo 1: clock",
    "before late-1x 1: clock",
    "before stream-1x 1: clock",
    "before stream-9 1: clock",
    "before stream-1-replica-3 1: clock",
    "before stream-1-replica-0 1: clock",
    "before stream-1-replica-2x 1: clock",
    "before clock2 1: clock",
    "before redis-1 1: clock",
    "before client-1 0: clock",
    "before client-1 1: pause-client client-1",
    "before client-1 1: pause-client client-1 0",
    "before client-1 1: pause-client client-1 -1",
    "before client-1 1: pause-client client-1 1000000001",
    "before client-1 1: pause-client client-1x 1",
    "before client-1 1: pause-client client-1-watchdog 1",
    "before client-1 1: pause-client redis-1 1",
    "before client-1 1: kill-client client-1 1",
    "before client-1 1: clock-jump redis-1 0",
    "before client-1 1: clock-jump redis-1 -1000000001",
    "before client-1 1: clock-jump redis-1-replica-2 1",
    "before client-1 1: clock-jump client-1 1",
    "before client-1 1: crash-server redis-1x",
    "before client-1 1: failover redis-9",
    "before client-1 1: failover client-1",
    "before client-1 1: lose-reply redis-1",
    "before client-1 1: lose-reply client-1x",
    "before client-1 1: pause-client client-1 1 1",
    "before client-1 1: nonsense client-1",
    "before client-1 1 clock",
    "after client-1 1: clock",
};

/* Schedules with calls. While dropping them: a deviation strikes as many steps in as there are calls. For the control:
 * it takes effect while the first client has calls, and both clients' calls are needed. */
static enum { NO_CALLS, DROPPED, CONTROLLED } calls_case;

static const struct shrink_case *played;
static int64_t runs;
static bool asked_wrongly, left_over;

uint64_t search_seed(uint64_t seed, uint64_t number) {
    return seed * 100 + number;
}

static bool has_line(const struct schedule *schedule, const char *wanted) {
    char line[SCHEDULE_LINE];
    for (size_t each = 0; each < schedule->count; each++)
        if (strcmp(deviation_write(&SIMULATED_CHOICES, &schedule->deviations[each], line), wanted) == 0) return true;
    return false;
}

static bool is_caused(const struct cause *cause, const struct schedule *schedule) {
    if (!cause->lines[0] || cause->clients != schedule->workload.clients) return false;
    for (int each = 0; each < 4 && cause->lines[each]; each++)
        if (!has_line(schedule, cause->lines[each])) return false;
    return true;
}

static int thread_calls(const struct schedule *schedule, int client) {
    return schedule->workload.threads[workload_thread_number(client, 0)].count;
}

static bool calls_violate(const struct schedule *schedule) {
    bool struck = schedule->count > 0 && schedule->deviations[0].step == (uint64_t)thread_calls(schedule, 0);
    return calls_case == DROPPED ? struck : thread_calls(schedule, 0) > 0 && thread_calls(schedule, 1) > 0;
}

static bool has_effect(const struct schedule *schedule, const struct deviation *deviation) {
    return calls_case == CONTROLLED ? thread_calls(schedule, 0) > 0 : deviation->step < NO_EFFECT;
}

struct search_outcome search_replay(struct search *search, const struct schedule *schedule, uint64_t seed,
                                    uint64_t number, bool anew, bool *used) {
    struct search_outcome outcome = {.played = true};
    runs++;
    asked_wrongly |= seed != search_seed(SEED, NUMBER) || number != NUMBER || anew || used;
    workload_copy(&search->schedule.workload, &schedule->workload);
    search->schedule.count = 0;
    for (size_t each = 0; each < schedule->count; each++)
        if (has_effect(schedule, &schedule->deviations[each]))
            schedule_add(&search->schedule, schedule->deviations[each]);
    for (int each = 0; each < SEARCH_PROPERTIES; each++) outcome.status[each] = VERDICT_HOLDS;
    outcome.status[UNWANTED] = VERDICT_VIOLATED;
    for (int each = 0; each < SEARCH_PROPERTIES; each++) outcome.sorts[each] = 1;
    for (int each = 0; each < 2 && !calls_case; each++)
        if (is_caused(&played->causes[each], schedule)) outcome.status[played->violates] = VERDICT_VIOLATED;
    if (calls_case && calls_violate(schedule)) outcome.status[WANTED] = VERDICT_VIOLATED;
    return outcome;
}

static void play(const struct shrink_case *asked, const char *separator) {
    static struct search search;
    static struct schedule smallest;
    struct search_settings settings = {.seed = SEED, .shrink_runs = asked->runs};
    char line[SCHEDULE_LINE];
    played = asked;
    runs = 0;
    asked_wrongly = false;
    memset(&search, 0, sizeof search);
    search.world = &played_world;
    search.settings = &settings;
    search.found_number = search.found_origin = NUMBER;
    search.found.workload.clients = asked->clients;
    settings.required[WANTED] = settings.required[OTHER] = 1;
    for (int each = 0; each < SEARCH_PROPERTIES; each++) {
        search.found_outcome.status[each] = VERDICT_HOLDS;
        search.found_outcome.sorts[each] = 1;
    }
    search.found_outcome.status[WANTED] = search.found_outcome.status[UNWANTED] = VERDICT_VIOLATED;
    for (int each = 0; each < LINES && asked->lines[each]; each++) {
        struct deviation deviation = {.usual.amount = 1, .instead.amount = 1};
        const char *reason;
        if (!deviation_read(&SIMULATED_CHOICES, asked->lines[each], &deviation, &reason)) exit(2);
        bool has_amount = choice_has_amount(deviation.instead.kind);
        left_over |= deviation.usual.amount || (deviation.instead.amount && !has_amount);
        schedule_add(&search.found, deviation);
    }
    (void)search_shrink(&search, &smallest);
    printf("%s\"%s\": {\"clients\": %d, \"runs\": %" PRId64 ", \"asked_wrongly\": %s, \"lines\": [", separator,
           asked->name, smallest.workload.clients, runs, asked_wrongly ? "true" : "false");
    for (size_t each = 0; each < smallest.count; each++)
        printf("%s\"%s\"", each ? ", " : "", deviation_write(&SIMULATED_CHOICES, &smallest.deviations[each], line));
    printf("]}");
    schedule_free(&smallest);
    schedule_free(&search.found);
    schedule_free(&search.schedule);
}

static void schedule_print(const char *name, const struct schedule *schedule) {
    char line[SCHEDULE_LINE];
    printf(", \"%s\": {\"calls\": [%d, %d], \"lines\": [", name, thread_calls(schedule, 0), thread_calls(schedule, 1));
    for (size_t each = 0; each < schedule->count; each++)
        printf("%s\"%s\"", each ? ", " : "", deviation_write(&SIMULATED_CHOICES, &schedule->deviations[each], line));
    printf("]}");
}

static void play_calls(const char *name, const char *const *lines, bool controls) {
    static struct search search;
    static struct schedule made;
    struct search_settings settings = {.seed = SEED, .shrink_runs = 1000};
    const char *reason;
    memset(&search, 0, sizeof search);
    calls_case = controls ? CONTROLLED : DROPPED;
    search.world = &played_world;
    search.settings = &settings;
    search.found_number = search.found_origin = NUMBER;
    search.found.workload.clients = 2;
    settings.required[WANTED] = 1;
    search.found_outcome.status[WANTED] = VERDICT_VIOLATED;
    search.found_outcome.sorts[WANTED] = 1;
    for (int each = 0; lines[each]; each++) {
        struct deviation deviation;
        bool strikes = strncmp(lines[each], "before", 6) == 0;
        if (strikes ? !deviation_read(&SIMULATED_CHOICES, lines[each], &deviation, &reason)
                    : !workload_line_read(&search.found.workload, lines[each], &reason))
            exit(2);
        if (strikes) schedule_add(&search.found, deviation);
    }
    workload_match(&search.found.workload);
    memset(&made, 0, sizeof made);
    bool good = controls ? search_control(&search, &search.found, &made) : search_shrink(&search, &made);
    if (good) schedule_print(name, &made);
    schedule_free(&made);
    schedule_free(&search.found);
    schedule_free(&search.schedule);
    calls_case = NO_CALLS;
}

#define PAIR(client)                                                                                                   \
    client " thread-1: acquire lock-1 resource-1 exclusive wait=none lease=given:2000 form=f",                         \
        client " thread-1: release lock-1 resource-1 exclusive"

static void say_accepted(void) {
    struct deviation deviation;
    const char *separator = "", *reason;
    printf(", \"accepted\": [");
    for (size_t each = 0; each < sizeof REFUSED / sizeof REFUSED[0]; each++) {
        if (!deviation_read(&SIMULATED_CHOICES, REFUSED[each], &deviation, &reason)) continue;
        printf("%s\"%s\"", separator, REFUSED[each]);
        separator = ", ";
    }
    printf("], \"left_over\": %s", left_over ? "true" : "false");
}

int main(void) {
    for (size_t each = 0; each < sizeof CASES / sizeof CASES[0]; each++) play(&CASES[each], each ? ", " : "{");
    static const char *const three[] = {PAIR("client-1"), PAIR("client-1"), PAIR("client-1"),
                                        "before client-1 6: pause-client client-1 1000", NULL};
    static const char *const both[] = {PAIR("client-1"), PAIR("client-2"),
                                       "before client-1 1: pause-client client-1 1000", NULL};
    play_calls("fewer_calls", three, false);
    play_calls("control", both, true);
    say_accepted();
    printf("}\n");
    return 0;
}
