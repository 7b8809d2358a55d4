#include "checkers/engine/judge.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A checker that asked for a kind of record. */
struct route {
    check_record *call;
    struct checking *my;
};

/* The release-invokes that never happened by this reading, in order. */
struct failed {
    uint64_t *indices;
    uint64_t count, room, next;
};

struct pass {
    struct judgement *judgement;
    struct route routes[UINT8_MAX + 1][CHECKERS_MOST + 1]; /* where a record goes, by kind; NULL ends */
    struct failed failed;
};

/* --- before the first record --- */

static size_t room(size_t *size, size_t wanted) {
    size_t at = (*size + 7) / 8 * 8;
    *size = at + wanted;
    return at;
}

static void checkers_open(struct pass *pass) {
    struct judgement *judgement = pass->judgement;
    struct participants *participants = &judgement->participants;
    participants->lock_size = sizeof(struct check_lock);
    participants->actor_size = sizeof(struct check_actor);
    participants->member_size = sizeof(struct check_member);
    int routes[HISTORY_KIND_COUNT] = {0};
    for (int each = 0; CHECKER_TABLE[each]; each++, judgement->checkers++) {
        assert(each < CHECKERS_MOST); /* so that a NULL ends each route */
        const struct checker *checker = CHECKER_TABLE[each];
        struct checking *my = &judgement->at_work[each];
        *my = (struct checking){.checker = checker, .check = &judgement->check};
        my->state = calloc(1, checker->state_size + 1);
        if (!my->state) abort();
        my->lock_at = room(&participants->lock_size, checker->lock_size);
        my->actor_at = room(&participants->actor_size, checker->actor_size);
        my->member_at = room(&participants->member_size, checker->member_size);
        for (int kind = 0; kind < HISTORY_KIND_COUNT; kind++)
            if (checker->on[kind]) pass->routes[kind][routes[kind]++] = (struct route){checker->on[kind], my};
    }
}

static int rising(const void *one, const void *other) {
    const uint64_t *left = one, *right = other;
    return (*left > *right) - (*left < *right);
}

static void failed_add(struct failed *failed, uint64_t *release) {
    if (*release == 0) return;
    if (failed->count == failed->room) {
        failed->room = failed->room ? failed->room * 2 : 64;
        failed->indices = realloc(failed->indices, failed->room * sizeof *failed->indices);
        if (!failed->indices) abort();
    }
    failed->indices[failed->count++] = *release;
    *release = 0;
}

static void failed_take(struct failed *failed, struct participants *participants, const struct history_record *record,
                        uint64_t index) {
    bool exits = record->kind == HISTORY_ACTOR_EXIT, returns = record->kind == HISTORY_RELEASE_RETURN;
    if (!exits && !returns && record->kind != HISTORY_RELEASE_INVOKE) return;
    uint64_t *release = &participants_actor(participants, exits ? record->name : record->actor)->begun;
    if (returns && record->outcome == OUTCOME_OK) *release = 0;
    failed_add(failed, release);
    if (!exits && !returns) *release = index;
}

/* Looks ahead for the releases that do not come back ok, also behind a damaged record. It reads in batches, as the pass
 * itself does, so that the pages behind it are given back. */
static void failed_find(struct pass *pass) {
    struct history_reader *reader = pass->judgement->check.reader;
    struct check nobody = {0};
    struct participants participants = {.lock_size = sizeof(struct check_lock),
                                        .actor_size = sizeof(struct check_actor),
                                        .member_size = sizeof(struct check_member)};
    const struct history_record *records;
    struct history_record none;
    participants_open(&participants, &nobody);
    history_reader_rewind(reader);
    for (uint64_t first = 0;;) {
        uint64_t count = history_reader_batch(reader, &records);
        for (uint64_t place = 0; place < count; place++)
            failed_take(&pass->failed, &participants, &records[place], first + place);
        first += count;
        if (count > 0) continue;
        if (history_reader_next(reader, false, &none) == HISTORY_END) break;
        first++;
    }
    for (struct check_actor *actor = nobody.actors; actor; actor = actor->next)
        failed_add(&pass->failed, &actor->begun);
    participants_close(&participants);
    if (pass->failed.count) qsort(pass->failed.indices, pass->failed.count, sizeof *pass->failed.indices, rising);
}

/* --- records that the judge itself uses --- */

/* Clamped, for a hostile history: none, or a very long one. */
static int64_t duration_ns(int64_t duration_ms) {
    return larger(0, smaller(duration_ms, INT64_MAX / 4000000)) * 1000000;
}

static void judge_opened(struct check *check, struct check_lock *lock, const struct history_record *record) {
    lock->traits = (uint32_t)record->extra;
    lock->lease_ns = duration_ns(record->value);
    if (record->token > 0) lock->capacity = record->token;
    check->traits |= lock->traits;
    check->capacity = larger(check->capacity, lock->capacity);
}

static void parameter_recorded(struct judgement *judgement, const struct history_record *record) {
    char room[32];
    struct recorded_parameter *parameter = check_table_add(&judgement->parameters, record->name);
    parameter->is_text = record->flags & HISTORY_FLAG_TEXT;
    parameter->value = record->value;
    const char *name = history_name(judgement->check.reader, record->name, room, sizeof room);
    if (strcmp(name, "faults_meant") == 0) judgement->assumptions.faults_meant = record->value;
    if (record->value < 0) return;
    if (strcmp(name, "bound_ms") == 0) judgement->check.bound_ns = duration_ns(record->value);
    if (strcmp(name, "order_ms") == 0) judgement->check.order_ns = duration_ns(record->value);
}

static void phase_recorded(struct check *check, const struct event *event) {
    char name[16];
    bool quiet = strcmp(history_name(check->reader, event->record->name, name, sizeof name), "quiet") == 0;
    check->quiet = quiet ? event->index : 0;
    check->quiet_ns = event->record->mono_ns;
}

static bool release_failed(struct pass *pass, const struct event *event) {
    struct failed *failed = &pass->failed;
    if (event->record->kind == HISTORY_RELEASE_INVOKE) {
        /* Indices rise, as records do: the next one is this record's or a later one's. */
        assert(failed->next == failed->count || failed->indices[failed->next] >= event->index);
        bool is = failed->next < failed->count && failed->indices[failed->next] == event->index;
        failed->next += is;
        event->member->failed_release = is ? event->index : 0;
        return is;
    }
    return event->asked && event->member->failed_release == event->asked;
}

static inline void call(const struct pass *pass, const struct event *event, unsigned kind) {
    for (const struct route *route = pass->routes[kind]; route->call; route++) route->call(route->my, event);
}

/* Checkers that keep something of each member are called for each of the client's. */
static SELDOM void exited(struct pass *pass, struct event *event) {
    event->actor = participants_actor(&pass->judgement->participants, event->record->name);
    for (const struct route *route = pass->routes[HISTORY_ACTOR_EXIT]; route->call; route++) {
        bool each = route->my->checker->member_size > 0;
        event->member = NULL;
        event->lock = NULL;
        if (!each) route->call(route->my, event);
        for (struct check_member *member = event->actor->members; each && member; member = member->next_of_actor) {
            event->member = member;
            event->lock = member->lock;
            route->call(route->my, event);
        }
    }
    event->actor->gone = true; /* last: checkers ask what the client had outstanding */
    event->actor->outstanding = 0;
}

/* Others come at any time: a watchdog announces a validity, a server hears of a renewal. */
static inline bool of_worker(unsigned kind) {
    return kind != HISTORY_VALIDITY && kind != HISTORY_SERVER_RENEWAL;
}

static inline void lock_granted(const struct event *event) {
    struct check_lock *lock = event->lock;
    int64_t since_ns = elapsed_ns(lock->released_ns, event->record->mono_ns);
    event->member->grant = event->index;
    lock->holder = event->actor;
    if (lock->released && since_ns >= lock->lease_ns - CHECK_LEASE_GRAIN_NS) lock->lapsed = lock->released;
}

static inline void lock_released(const struct event *event) {
    if (event->lock->holder != event->actor && event->lock->capacity == 1) return;
    event->lock->released = event->index;
    event->lock->released_ns = event->record->mono_ns;
}

/* A record about a lock. */
static inline __attribute__((always_inline)) void about_lock(struct pass *pass, struct event *event, unsigned kind) {
    struct judgement *judgement = pass->judgement;
    const struct history_record *record = event->record;
    event->member = participants_member(&judgement->participants, record->name, record->actor);
    event->lock = event->member->lock;
    event->actor = event->member->actor;
    /* The assumptions before the checkers: a return takes the index of its invocation from them (`asked`). */
    if (kind == HISTORY_LOCK_OPEN) judge_opened(&judgement->check, event->lock, record);
    else if (of_worker(kind) && kind % 2 == 1) assumptions_invoked(&judgement->assumptions, event);
    else if (of_worker(kind)) assumptions_returned(&judgement->assumptions, event);
    if (kind == HISTORY_ACQUIRE_RETURN) {
        judgement->check.granted += record->outcome == OUTCOME_OK;
        judgement->check.refused += record->outcome == OUTCOME_REFUSED;
        judgement->check.timed_out += record->outcome != OUTCOME_OK && record->outcome != OUTCOME_REFUSED;
    } else if (kind == HISTORY_RELEASE_INVOKE) {
        if (record->grant && record->grant != event->member->grant) assumptions_release(&judgement->assumptions, event);
        event->failed = pass->failed.count && release_failed(pass, event);
    } else if (kind == HISTORY_RELEASE_RETURN) {
        judgement->failed_releases += record->outcome != OUTCOME_OK;
        event->failed = pass->failed.count && release_failed(pass, event);
    }
    call(pass, event, kind);
    /* Afterwards: to the checkers `member->grant` is the grant before this one. */
    if (kind == HISTORY_ACQUIRE_RETURN && record->outcome == OUTCOME_OK) lock_granted(event);
    if (kind == HISTORY_RELEASE_INVOKE) lock_released(event);
}

/* The record may name an older grant, or no grant at all. */
static SELDOM void find_lock_of_grant(struct pass *pass, struct event *event) {
    uint32_t grant = event->record->grant;
    if (grant >= event->index) return;
    struct history_record record = check_record_at(&pass->judgement->check, grant);
    if (record.kind != HISTORY_ACQUIRE_RETURN || record.outcome != OUTCOME_OK) return;
    event->member = participants_member(&pass->judgement->participants, record.name, event->actor->name);
    event->lock = event->member->lock;
}

static inline void find_lock_of_access(struct pass *pass, struct event *event) {
    struct check_member *latest = event->actor->latest;
    if (event->record->grant == 0) return;
    if (latest && latest->grant == event->record->grant) {
        event->member = latest;
        event->lock = latest->lock;
    } else {
        find_lock_of_grant(pass, event);
    }
}

/* A record of a client and the store. */
static inline __attribute__((always_inline)) void about_store(struct pass *pass, struct event *event, unsigned kind) {
    bool by_store = kind == HISTORY_STORE_READ || kind == HISTORY_STORE_WRITE;
    uint32_t name = by_store ? event->record->name : event->record->actor;
    event->actor = participants_actor(&pass->judgement->participants, name);
    if (by_store) find_lock_of_access(pass, event);
    if (by_store) assumptions_store(&pass->judgement->assumptions, event);
    else if (kind % 2 == 1) assumptions_invoked(&pass->judgement->assumptions, event);
    else assumptions_returned(&pass->judgement->assumptions, event);
    call(pass, event, kind);
}

/* Each case is compiled on its own, so that a record costs one jump. */
static void dispatch(struct pass *pass, struct event *event, unsigned kind) {
    struct judgement *judgement = pass->judgement;
    switch (kind) {
    case HISTORY_LOCK_OPEN: about_lock(pass, event, HISTORY_LOCK_OPEN); break;
    case HISTORY_ACQUIRE_INVOKE: about_lock(pass, event, HISTORY_ACQUIRE_INVOKE); break;
    case HISTORY_ACQUIRE_RETURN: about_lock(pass, event, HISTORY_ACQUIRE_RETURN); break;
    case HISTORY_RENEW_INVOKE: about_lock(pass, event, HISTORY_RENEW_INVOKE); break;
    case HISTORY_RENEW_RETURN: about_lock(pass, event, HISTORY_RENEW_RETURN); break;
    case HISTORY_RELEASE_INVOKE: about_lock(pass, event, HISTORY_RELEASE_INVOKE); break;
    case HISTORY_RELEASE_RETURN: about_lock(pass, event, HISTORY_RELEASE_RETURN); break;
    case HISTORY_VALIDITY: about_lock(pass, event, HISTORY_VALIDITY); break;
    case HISTORY_SERVER_RENEWAL: about_lock(pass, event, HISTORY_SERVER_RENEWAL); break;
    case HISTORY_READ_INVOKE: about_store(pass, event, HISTORY_READ_INVOKE); break;
    case HISTORY_WRITE_INVOKE: about_store(pass, event, HISTORY_WRITE_INVOKE); break;
    case HISTORY_READ_RETURN: about_store(pass, event, HISTORY_READ_RETURN); break;
    case HISTORY_WRITE_RETURN: about_store(pass, event, HISTORY_WRITE_RETURN); break;
    case HISTORY_STORE_READ: about_store(pass, event, HISTORY_STORE_READ); break;
    case HISTORY_STORE_WRITE: about_store(pass, event, HISTORY_STORE_WRITE); break;
    case HISTORY_ACTOR_EXIT: exited(pass, event); break;
    case HISTORY_FAULT_INJECT:
    case HISTORY_FAULT_PROVE: assumptions_fault(&judgement->assumptions, event->record); break;
    case HISTORY_PARAMETER: parameter_recorded(judgement, event->record); break;
    case HISTORY_PHASE:
        phase_recorded(&judgement->check, event);
        call(pass, event, kind);
        break;
    default: call(pass, event, kind); break;
    }
}

static void judge_take(struct pass *pass, const struct history_record *records, uint64_t count, uint64_t first) {
    struct check *check = &pass->judgement->check;
    if (count > 0 && pass->judgement->assumptions.records == 0) check->began_ns = records->mono_ns;
    pass->judgement->assumptions.records += count;
    for (uint64_t place = 0; place < count; place++) {
        struct event event = {.record = &records[place], .index = first + place};
        unsigned kind = event.record->kind;
        __builtin_prefetch(&records[place + HISTORY_BATCH]); /* of the next batch, which is checked as a whole first */
        check->seen[kind]++;
        if (kind == HISTORY_TEXT_MORE) continue; /* a piece of text: it has no stamp */
        if (event.record->mono_ns > check->now_ns) check->now_ns = event.record->mono_ns;
        dispatch(pass, &event, kind);
    }
}

/* --- the whole --- */

static bool all_records(struct pass *pass) {
    struct history_reader *reader = pass->judgement->check.reader;
    const struct history_record *records;
    struct history_record none;
    history_reader_rewind(reader);
    for (uint64_t first = 0;;) {
        uint64_t count = history_reader_batch(reader, &records);
        judge_take(pass, records, count, first);
        first += count;
        if (count > 0) continue;
        enum history_state state = history_reader_next(reader, false, &none);
        if (state == HISTORY_END) return true;
        pass->judgement->damaged = first++;
        if (state == HISTORY_DAMAGED) return false;
        if (state == HISTORY_TORN) pass->judgement->assumptions.torn++;
    }
}

static void judge_decide(struct judgement *judgement) {
    judgement->assumptions.dropped = history_reader_dropped(judgement->check.reader);
    bool nothing =
        assumptions_end(&judgement->assumptions, judgement->inapplicable_reason, sizeof judgement->inapplicable_reason);
    for (int each = 0; each < judgement->checkers; each++) {
        struct checking *my = &judgement->at_work[each];
        struct verdict *verdict = &my->verdict;
        my->checker->finish(my);
        if (!judgement->inapplicable_reason[0] || (verdict->status == VERDICT_VIOLATED && !nothing)) continue;
        bool applies = verdict->applies;
        if (nothing) *verdict = (struct verdict){.applies = applies};
        verdict->status = VERDICT_INCONCLUSIVE;
        snprintf(verdict->reason, sizeof verdict->reason, "%.*s", (int)sizeof verdict->reason - 1,
                 judgement->inapplicable_reason);
    }
}

bool judge(struct judgement *judgement, struct history_reader *reader, struct check_reading reading) {
    static struct pass pass; /* large */
    *judgement = (struct judgement){
        .check = {.reader = reader, .reading = reading, .bound_ns = -1, .order_ns = -1, .now_ns = INT64_MIN},
        .assumptions = {.check = &judgement->check,
                        .participants = &judgement->participants,
                        .faults.size = sizeof(struct recorded_fault)},
        .parameters.size = sizeof(struct recorded_parameter),
    };
    memset(&pass, 0, sizeof pass);
    pass.judgement = judgement;
    checkers_open(&pass);
    participants_open(&judgement->participants, &judgement->check);
    if (reading.releases_failed) failed_find(&pass);
    bool whole = all_records(&pass);
    assert(!whole || pass.failed.next == pass.failed.count);
    judge_decide(judgement);
    free(pass.failed.indices);
    return whole;
}

void judge_close(struct judgement *judgement) {
    for (int each = 0; each < judgement->checkers; each++) free(judgement->at_work[each].state);
    participants_close(&judgement->participants);
    free(judgement->assumptions.faults.entries);
    free(judgement->parameters.entries);
}
