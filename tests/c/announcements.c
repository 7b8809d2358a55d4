/* announcements DIRECTORY: what a client's shared page shows of its validity, and what the history records, while its
 * lock announces validities before, during and after grants; then the same from a second thread, as a watchdog does it,
 * while the grant ends.
 *
 * Prints one JSON line: the number of rounds of the threads and of their announcements, and how often the page showed a
 * validity after the end of a grant. Exit status: 0 passed, 1 failed, 2 it could not be tried. */
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness/client/validity.h"

enum { CAPACITY = 1 << 12, CLIENT = 1, LOCK = 2, ROUNDS = 20000, ROUNDS_LIMIT_S = 20, VIEWS = 20 };

struct stage {
    char history_path[PATH_MAX];
    struct shared_page *page;
    struct actor client;
    _Atomic bool ends;
    _Atomic int announced;
};

static bool begin(struct stage *stage, const char *directory, const char *name) {
    struct history_error error;
    struct history_settings settings = {.capacity = CAPACITY, .time = HISTORY_TIME_VIRTUAL};
    char path[PATH_MAX];
    *stage = (struct stage){.ends = false};
    snprintf(path, sizeof path, "%s/%s.page", directory, name);
    snprintf(stage->history_path, sizeof stage->history_path, "%s/%s.history", directory, name);
    if (!history_create(stage->history_path, &settings, &error) ||
        !shared_page_create(path, settings.time, 1, SHARED_PAGE_TASKS, &error) ||
        !(stage->page = shared_page_open(path, &error)))
        return fprintf(stderr, "announcements: %s\n", error.text), false;
    struct history *history = history_open(stage->history_path, &error);
    stage->client = (struct actor){history, stage->page, CLIENT, &stage->page->tasks[0]};
    return history != NULL;
}

static void end(struct stage *stage) {
    history_close(stage->client.history);
    shared_page_close(stage->page);
}

static int64_t shown_ns(const struct stage *stage) {
    return atomic_load(&stage->page->tasks[0].valid_until_ns);
}

/* --- one after the other --- */

enum action { GRANT, RELEASE, ANNOUNCE };

/* What happens at which time, and what the page then shows; of an announcement also its record. */
static const struct moment {
    enum action action;
    int64_t now_ns, until_ns, shown_ns;
    enum outcome outcome;
    int64_t value;
} MOMENTS[] = {
    {ANNOUNCE, 0, 50, 0, OUTCOME_OK, 50}, /* nothing is granted: the page shows nothing */
    {GRANT, 0, 0, -1, 0, 0},              /* without a validity */
    {ANNOUNCE, 0, 0, -1, OUTCOME_REFUSED, 1},
    {ANNOUNCE, 0, -7, -1, OUTCOME_REFUSED, 1},
    {ANNOUNCE, 0, 1, 1, OUTCOME_OK, 1},
    {ANNOUNCE, 10, INT64_MAX, INT64_MAX, OUTCOME_OK, INT64_MAX},
    {ANNOUNCE, 10, 0, -1, OUTCOME_REFUSED, 10},
    {ANNOUNCE, 10, INT64_MIN, -1, OUTCOME_REFUSED, 10},
    {ANNOUNCE, 10, 10, -1, OUTCOME_REFUSED, 10}, /* the end is closed */
    {ANNOUNCE, 10, 7, -1, OUTCOME_REFUSED, 7},
    {ANNOUNCE, 10, 11, 11, OUTCOME_OK, 11}, /* a grant that was lost may be valid again */
    {RELEASE, 10, 0, 0, 0, 0},
    {ANNOUNCE, 10, 90, 0, OUTCOME_OK, 90},
    {ANNOUNCE, 10, 3, 0, OUTCOME_REFUSED, 3},
    {GRANT, 20, 60, 60, 0, 0},
    {ANNOUNCE, 30, 80, 80, OUTCOME_OK, 80},
    {RELEASE, 30, 0, 0, 0, 0},
};

static void act(const struct stage *stage, const struct moment *moment) {
    atomic_store(&stage->page->mono_ns, moment->now_ns);
    switch (moment->action) {
    case GRANT: validity_begin(&stage->client, moment->until_ns); break;
    case RELEASE: validity_end(&stage->client); break;
    case ANNOUNCE: validity_announce(&stage->client, LOCK, moment->until_ns); break;
    }
}

static bool is_recorded(const struct moment *moment, const struct history_record *record) {
    return record->kind == HISTORY_VALIDITY && record->actor == CLIENT && record->name == LOCK &&
           record->outcome == (uint8_t)moment->outcome && record->value == moment->value && record->extra == 0;
}

/* Number of moments that were not as they should be. */
static int play_moments(const struct stage *stage) {
    struct history_error error;
    struct history_record record;
    struct history_reader *reader = history_reader_open(stage->history_path, &error);
    uint64_t records = reader ? history_reader_count(reader) : 0;
    int wrong = reader == NULL;
    history_reader_close(reader);
    for (size_t each = 0; each < sizeof MOMENTS / sizeof MOMENTS[0]; each++) {
        const struct moment *moment = &MOMENTS[each];
        act(stage, moment);
        reader = history_reader_open(stage->history_path, &error);
        bool announces = moment->action == ANNOUNCE;
        bool right =
            reader && shown_ns(stage) == moment->shown_ns && history_reader_count(reader) == records + announces;
        if (right && announces) right = history_reader_at(reader, records, &record) && is_recorded(moment, &record);
        history_reader_close(reader);
        records += announces;
        if (!right) fprintf(stderr, "announcements: moment %zu: the page shows %" PRId64 "\n", each, shown_ns(stage));
        wrong += !right;
    }
    return wrong;
}

/* --- at once --- */

static void *announce(void *argument) {
    struct stage *stage = argument;
    while (!atomic_load(&stage->ends)) {
        validity_announce(&stage->client, LOCK, atomic_fetch_add(&stage->announced, 1) % 2 ? INT64_MAX : 0);
    }
    return NULL;
}

/* Each grant ends while announcements are made. Number of views of the page that showed a validity afterwards. On a
 * busy machine, where each turn of a thread takes long, there are fewer rounds. */
static int play_rounds(struct stage *stage, int *rounds) {
    int shown = 0;
    time_t until = time(NULL) + ROUNDS_LIMIT_S;
    for (*rounds = 0; *rounds < ROUNDS && time(NULL) < until; ++*rounds) {
        int announced = atomic_load(&stage->announced);
        validity_begin(&stage->client, 1 + *rounds);
        while (atomic_load(&stage->announced) < announced + 2) sched_yield();
        validity_end(&stage->client);
        for (int view = 0; view < VIEWS; view++) shown += shown_ns(stage) != 0;
    }
    return shown;
}

int main(int argc, char **argv) {
    struct stage stage;
    pthread_t watchdog;
    if (argc != 2) return fprintf(stderr, "usage: announcements DIRECTORY\n"), 2;
    if (!begin(&stage, argv[1], "moments")) return 2;
    int wrong = play_moments(&stage);
    end(&stage);
    if (!begin(&stage, argv[1], "rounds") || pthread_create(&watchdog, NULL, announce, &stage) != 0) return 2;
    int rounds, shown = play_rounds(&stage, &rounds);
    atomic_store(&stage.ends, true);
    pthread_join(watchdog, NULL);
    printf("{\"wrong_moments\": %d, \"rounds\": %d, \"announced\": %d, \"shown_after_end\": %d}\n", wrong, rounds,
           atomic_load(&stage.announced), shown);
    end(&stage);
    return wrong == 0 && shown == 0 ? 0 : 1;
}
