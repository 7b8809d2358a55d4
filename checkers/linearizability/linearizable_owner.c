/* Locks that have an owner: owner-mutex, reentrant-mutex, fenced-mutex. A small set of configurations is enough.
 *
 * Firm operations did happen between call and return; free ones (unknown outcome) happen at any moment after the call,
 * or never. Every linearization can be brought into a normal form, step by step, and only that form is looked for:
 *
 *  1. A hold may be shortened: its firm acquire moves to just before its return, its firm release to just after its
 *     call. What was allowed around it still is, since the lock is free more often. So a hold that begins and ends
 *     with firm operations lasts exactly from the return of the one to the call of the other. (A second acquire of a
 *     re-entrant lock within the hold moves to just before its return, a release to just after its call.)
 *  2. A free acquire is of use only directly before a firm release of the same process that finds nothing to release:
 *     without such a release it only keeps others out, and together with a free release it changes nothing. The two
 *     take up one free moment between the release's call and return; no other operation notices.
 *  3. A free release is of use only where it ends a hold of its process so that the lock is free when another
 *     operation needs it to be. It moves to the last moment before that; or, where it ends the very hold that an
 *     acquire begins, the two take up one free moment while that acquire is under way. A process does one operation
 *     after the other, so the free operation that goes with a firm one was called before it.
 *     A firm renewal finds its process holding. Where the hold that it finds began with a free acquire and has had no
 *     other use yet, that acquire moves to just before the renewal: together they are a firm acquire, called when the
 *     renewal was, at the price of one free acquire. Otherwise the renewal moves to its call and changes nothing. A
 *     free renewal is of no use.
 *  4. Moments are alike: an operation that needs a free moment after s has one if the last free moment so far is after
 *     s. While p holds, the last free moment was just before p's acquire returned (by 1). While nobody holds, it is
 *     now.
 *
 * So the sweep walks through the events and keeps configurations: who holds, since when, how deep; for each process how
 * many of its free operations are used; and which processes *owe*: a release or a renewal was called while its process
 * did not hold, and needs a free acquire and a moment (2) until it returns. At an event, a configuration has at most
 * two successors:
 *
 *   firm release of p called     p holds: it ends here, or is one less deep (1). Else p owes.
 *   firm release of p returns    If p owes: (2), at the last free moment if that is after its call; else now, if the
 *                                holder's hold can be ended by free releases (3).
 *   firm renewal of p called     p holds: nothing changes. Else p owes.
 *   firm renewal of p returns    If p owes: (a) nobody holds, or the holder's hold ends now (3), and p holds; (b) the
 *                                free acquire, the renewal and a free release of p took up the last free moment.
 *   firm acquire of p returns    Nobody holds: p holds. Else (a) the holder's hold ends now (3) and p holds; (b) p's
 *                                acquire and a free release of p took up the last free moment (3), or p holds and may
 *                                acquire again.
 *   free operation called        One more to use.
 *
 * With leases, a hold may also end by itself once the acquires that it consists of were answered; a hold that a renewal
 * shows began with a free acquire, at any time. In configurations all of these were (but see fenced-mutex), so a hold
 * can end whenever another operation needs the lock, and (b) of a renewal needs no free release.
 *
 * A configuration is dropped when another one owes no more and has used no more of anything: whatever the first can go
 * on with, the other can, since it may use now what it has used less, and is where the first is (its holder follows
 * from what was used; with leases it does not, and then the first has to hold what the other does, as deep, or to be
 * able to let go). One thing may be lost by that: a free moment in the past that only the first has had, which matters
 * while something is under way that was called before that moment and after the other's hold began. With nothing
 * ambiguous there is one configuration; each fork needs stray free operations of a process. When none is left, the
 * events up to here are the shortest prefix that is not linearizable: nothing above looks further ahead than to what is
 * under way, and that is free in the prefix and does no harm.
 *
 * Fenced-mutex: tokens say in which order the firm acquires happened. So an acquire also has to come before the return
 * of every acquire with a larger token; if it was called only after that, there is no linearization. Acquires are taken
 * at that earliest return, in the order of tokens, and (b) is out of the question: the last free moment is before a
 * grant with a smaller token. A free acquire took a token too, a whole number, so it needs one between those of the
 * grants around it: while a process owes, a free time is kept as a *gap* with the number of tokens that fit into it. A
 * process that owes pays, when its release returns, in the oldest gap since its call (those that return later can use a
 * later one). Without a gap it pays now, and the holder's hold ends if need be. When there is no token below the
 * next one, the acquires that come next and are under way are done first, each with a free release, as few as it takes.
 * Taking the first possible choice loses nothing each time: an operation that would have needed the gap can take the
 * place that was not taken now, at its own return or when the hold ends. So there is one configuration, unless a
 * renewal is explained by a free acquire. The token of the hold that this begins is not known either: what takes up the
 * moment before the hold comes first and takes the smaller token, be it a free acquire or, by (b), the next firm one. A
 * grant that is taken before its return was not answered: its hold does not end by itself until then. A configuration
 * that would have to begin the other's hold by a free acquire takes its place only if it has a token left for it. The
 * bounds use tokens that are seen only later; so the shortest prefix is found by bisection, which is allowed because a
 * prefix of what is linearizable is linearizable. Decision 0034.
 *
 * Leases of known length: a hold has a position from which it may end by itself (`lapses`), and a renewal moves it. A
 * renewal is taken at its call, although a hold may have ended between call and answer, and the renewal may be of a
 * later one that began with a free acquire: where its process has one left, the renewal does not make the lease longer.
 * An acquire whose lease was over before its answer came may have had its hold before the one that there is now. What
 * is known of a renewal only with its answer is not known in the prefix before, so this is bisected, too.
 *
 * Tokens of renewals (fenced-mutex): each is a deadline for the acquires whose tokens are not larger, and is below
 * every token after its hold (`known`). That of a renewal whose hold was ended, or that is explained by a free acquire
 * of the past, is not looked at. So both are exact where nothing is ambiguous, and elsewhere find nothing that is not
 * there.
 *
 * A loss (a refusal that is read as one) ends the hold of its process at its call, where that can do no harm: nobody
 * holds then. */
#include <assert.h>
#include <stdio.h>

#include "checkers/linearizability/owner_configurations.h"

/* --- events --- */

static bool can_pay(const struct owner_sweep *sweep, const struct owner_configuration *it, uint32_t process) {
    return owner_acquires_used(sweep, it, process) < sweep->acquires.called[process];
}

/* A renewal of the hold says anew how long its lease runs. It need not run longer if it is beyond the prefix, and may
 * not have happened, or may be of a later hold, which begins with a free acquire. */
static void renew_lease(const struct owner_sweep *sweep, struct owner_configuration *it,
                        const struct operation *operation) {
    if (it->holder != operation->process || operation->lapses == OPERATION_NIL) return;
    bool sure = timeline_standing(sweep->timeline, operation) == STANDS_FIRM && !can_pay(sweep, it, operation->process);
    if (sure || operation->lapses < it->lapses) it->lapses = (uint32_t)operation->lapses;
}

/* A release or renewal is called. */
static void proof_called(struct owner_sweep *sweep, const struct operation *operation) {
    bool releases = operation->kind == OPERATION_RELEASE;
    for (size_t each = 0; each < sweep->count; each++) {
        struct owner_configuration *it = &sweep->list[each];
        if (it->holder != operation->process) owner_difference_get(sweep, it, operation->process)->owes = true;
        else if (releases && --it->depth == 0) owner_hold_end(sweep, it);
        else if (!releases) renew_lease(sweep, it, operation);
    }
}

static void pay(struct owner_sweep *sweep, struct owner_configuration *it, uint32_t process) {
    struct owner_difference *difference = owner_difference_get(sweep, it, process);
    difference->owes = false;
    difference->acquires++;
    if (!owner_owes_any(it)) it->tokens.gap_count = 0;
}

/* A refusal says that the process does not hold the lock: the hold is over when it is called. */
static void loss_called(struct owner_sweep *sweep, const struct operation *operation) {
    for (size_t each = 0; each < sweep->count; each++)
        if (sweep->list[each].holder == operation->process) owner_hold_end(sweep, &sweep->list[each]);
}

/* Takes a token for a free acquire at a free moment, larger than the newest and smaller than the next known one.
 * Without such a token, the acquire with that one happens first, if it was called before and a free release ends its
 * hold. Before a hold of unknown token, this takes the token of the hold, which then has the one that is found. */
static bool take_token(struct owner_sweep *sweep, struct owner_configuration *it, uint32_t moment) {
    const struct token_order *order = &sweep->order;
    struct token_place *place = &it->tokens;
    if (sweep->model != MODEL_FENCED_MUTEX) return true;
    for (; place->next < order->count; place->next++) {
        const struct operation *next = &sweep->timeline->object->list[order->grants[place->next]];
        if (place->newest >= next->value) return false;
        if (place->newest < next->value - 1) break;
        if (next->call > moment) return false;
        bool lapses = next->lapses != OPERATION_NIL && next->lapses <= moment;
        if (!lapses && owner_releases_used(sweep, it, next->process) >= sweep->releases.called[next->process])
            return false;
        if (!lapses) owner_difference_get(sweep, it, next->process)->releases++;
        place->newest = next->value;
    }
    if (place->newest == INT64_MAX) return false;
    place->newest++;
    return true;
}

/* Is there a free moment since the call, before the hold? The token of the hold is not known, or nobody has one. */
static bool was_free_since(const struct owner_sweep *sweep, const struct owner_configuration *it,
                           const struct operation *operation) {
    if (it->holder == NOBODY || it->since <= operation->call) return false;
    return sweep->model != MODEL_FENCED_MUTEX || owner_is_free_hold(sweep, it);
}

/* Pays the debt at a free moment that has been since the call: the last one, or one in a gap. False if there was no
 * such moment. */
static bool pay_back_then(struct owner_sweep *sweep, struct owner_configuration *it,
                          const struct operation *operation) {
    bool gap = sweep->model == MODEL_FENCED_MUTEX && token_place_take_gap(&it->tokens, operation->call);
    if (!gap && !(was_free_since(sweep, it, operation) && take_token(sweep, it, it->since))) return false;
    pay(sweep, it, operation->process);
    return true;
}

/* Frees the lock now, and takes a token for a free acquire. False: it cannot. */
static bool pay_now(struct owner_sweep *sweep, struct owner_configuration *it, const struct operation *operation) {
    if (it->holder != NOBODY && !owner_can_let_go(sweep, it)) return false;
    if (it->holder != NOBODY) owner_let_go(sweep, it);
    if (!take_token(sweep, it, sweep->position)) return false;
    pay(sweep, it, operation->process);
    return true;
}

static void release_returned(struct owner_sweep *sweep, const struct operation *operation) {
    for (size_t each = 0; each < sweep->count; each++) {
        struct owner_configuration *it = &sweep->list[each];
        if (!owner_owes(it, operation->process)) continue;
        it->dead = !can_pay(sweep, it, operation->process) ||
                   (!pay_back_then(sweep, it, operation) && !pay_now(sweep, it, operation));
    }
}

/* The first position at which a hold may have ended by itself. */
static uint32_t lapse_position(const struct owner_sweep *sweep, const struct operation *operation) {
    if (operation->lapses != OPERATION_NIL) return (uint32_t)operation->lapses;
    return sweep->leases ? operation->end + 1 : OPERATION_OPEN;
}

/* May a hold that began with it have ended by itself before the one that there is now? */
static bool lapsed_back_then(const struct owner_sweep *sweep, const struct owner_configuration *it,
                             const struct operation *operation) {
    bool known = operation->lapses != OPERATION_NIL;
    if (operation->kind == OPERATION_ACQUIRE && !known) return false; /* not before its answer */
    /* What enters a hold again may be over with it, whatever it says itself. */
    bool again = operation->kind == OPERATION_ACQUIRE && sweep->model == MODEL_REENTRANT_MUTEX;
    return known ? again || operation->lapses <= it->since : sweep->leases;
}

/* Of an acquire, or a renewal that shows one. */
static void owner_hold_begin(const struct owner_sweep *sweep, struct owner_configuration *it, uint32_t index) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    it->holder = operation->process;
    it->since = sweep->position;
    it->depth = 1;
    it->grant = index;
    it->lapses = lapse_position(sweep, operation);
    /* It may be entered again, and then says nothing of its lease: a free acquire has begun it. */
    bool again = sweep->model == MODEL_REENTRANT_MUTEX && can_pay(sweep, it, operation->process);
    if (again && operation->lapses > operation->end) it->lapses = operation->end + 1;
}

/* The token of a renewal is that of its hold or a larger one; which a hold of unknown token took is not known. */
static void renew_token(const struct owner_sweep *sweep, struct owner_configuration *it,
                        const struct operation *renewal) {
    if (sweep->model != MODEL_FENCED_MUTEX || renewal->value == OPERATION_NIL) return;
    bool begins = &sweep->timeline->object->list[it->grant] == renewal;
    it->dead |= renewal->value < it->tokens.known || (begins && renewal->value == it->tokens.known);
    it->tokens.known = renewal->value;
}

/* The free acquire that a renewal shows begins a hold now, or began one that was over at once. */
static void renewal_returned(struct owner_sweep *sweep, uint32_t index) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    uint32_t process = operation->process;
    for (size_t each = 0, count = sweep->count; each < count; each++) {
        if (!owner_owes(&sweep->list[each], process)) {
            if (sweep->list[each].holder == process) renew_token(sweep, &sweep->list[each], operation);
            continue;
        }
        sweep->list[each].dead = !can_pay(sweep, &sweep->list[each], process);
        if (sweep->list[each].dead) continue;
        bool by_itself = lapsed_back_then(sweep, &sweep->list[each], operation);
        bool lapses =
            by_itself || owner_releases_used(sweep, &sweep->list[each], process) < sweep->releases.called[process];
        struct owner_configuration *now = lapses ? owner_fork(sweep, each) : &sweep->list[each];
        if (!now) return;
        now->dead = !pay_now(sweep, now, operation);
        if (!now->dead) owner_hold_begin(sweep, now, index), renew_token(sweep, now, operation);
        struct owner_configuration *then = &sweep->list[each];
        if (lapses) then->dead = !pay_back_then(sweep, then, operation);
        if (lapses && !by_itself) owner_difference_get(sweep, then, process)->releases++;
    }
}

/* The next acquire in the order of tokens happens: now, or before the hold, whose token is then larger. The free time
 * before it is kept as a gap while a process owes. */
static bool grant_next(struct owner_sweep *sweep, struct owner_configuration *it, int64_t token) {
    struct token_place *place = &it->tokens;
    assert(place->next < sweep->order.count);
    bool back_then = it->holder != NOBODY;
    place->next++;
    if (place->newest >= token) return false;
    uint64_t room = (uint64_t)token - (uint64_t)place->newest - 1 + back_then;
    place->newest = token;
    if (token > place->known) place->known = token;
    if (room > 0 && owner_owes_any(it))
        token_place_add_gap(place, back_then ? it->since : sweep->position, room, sweep->limits);
    return !back_then || take_token(sweep, it, it->since);
}

/* The hold of an acquire begins now, when nobody holds. */
static void hold(struct owner_sweep *sweep, struct owner_configuration *it, uint32_t index) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    assert(it->holder == NOBODY);
    if (sweep->model == MODEL_FENCED_MUTEX) it->dead = !grant_next(sweep, it, operation->value);
    owner_hold_begin(sweep, it, index);
}

/* Could the acquire and a free release of its process, or the end of its lease, have taken up the last free moment? */
static bool fits_back_then(const struct owner_sweep *sweep, const struct owner_configuration *it,
                           const struct operation *operation) {
    uint32_t process = operation->process;
    if (it->holder == process || !was_free_since(sweep, it, operation)) return false;
    return lapsed_back_then(sweep, it, operation) ||
           owner_releases_used(sweep, it, process) < sweep->releases.called[process];
}

static void take_moment(struct owner_sweep *sweep, struct owner_configuration *it, const struct operation *operation) {
    if (!lapsed_back_then(sweep, it, operation)) owner_difference_get(sweep, it, operation->process)->releases++;
    if (sweep->model == MODEL_FENCED_MUTEX) it->dead = !grant_next(sweep, it, operation->value);
}

static void acquire_returned(struct owner_sweep *sweep, uint32_t index) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    uint32_t process = operation->process;
    for (size_t each = 0, count = sweep->count; each < count; each++) {
        struct owner_configuration *it = &sweep->list[each];
        if (it->dead || (sweep->model == MODEL_FENCED_MUTEX && it->tokens.next != sweep->order.due)) {
            continue; /* done before */
        } else if (it->holder == NOBODY) {
            hold(sweep, it, index);
        } else if (it->holder == process && sweep->model == MODEL_REENTRANT_MUTEX) {
            bool moment =
                owner_can_let_go(sweep, it) && owner_called_between(sweep, process, it->since, sweep->position);
            moment |= sweep->timed && owner_may_lapse(sweep, it); /* then one release less ends it */
            struct owner_configuration *other = moment ? owner_fork(sweep, each) : NULL;
            if (other) owner_let_go(sweep, other), hold(sweep, other, index);
            sweep->list[each].depth++;
            uint32_t lapses = lapse_position(sweep, operation);
            if (operation->lapses != OPERATION_NIL && lapses < sweep->list[each].lapses)
                sweep->list[each].lapses = lapses;
        } else if (fits_back_then(sweep, it, operation)) {
            struct owner_configuration *other = owner_can_let_go(sweep, it) ? owner_fork(sweep, each) : NULL;
            if (other) owner_let_go(sweep, other), hold(sweep, other, index);
            take_moment(sweep, &sweep->list[each], operation);
        } else if (owner_can_let_go(sweep, it)) {
            owner_let_go(sweep, it);
            hold(sweep, it, index);
        } else {
            it->dead = true;
        }
    }
}

/* Does the acquires whose deadline is now. */
static void order_returned(struct owner_sweep *sweep) {
    struct token_order *order = &sweep->order;
    for (; order->due < order->count && order->deadlines[order->due] == sweep->position; order->due++)
        acquire_returned(sweep, order->grants[order->due]);
}

/* --- the sweep --- */

static bool supply_make(struct owner_sweep *sweep, struct owner_supply *supply) {
    supply->called = limits_numbers(sweep->limits, sweep->processes);
    supply->used = limits_numbers(sweep->limits, sweep->processes);
    return supply->called && supply->used;
}

static void supply_free(struct owner_sweep *sweep, struct owner_supply *supply) {
    limits_numbers_free(sweep->limits, supply->called, sweep->processes);
    limits_numbers_free(sweep->limits, supply->used, sweep->processes);
    *supply = (struct owner_supply){0};
}

static void owner_violated(struct owner_sweep *sweep, uint32_t index) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    bool token =
        sweep->model == MODEL_FENCED_MUTEX && operation->kind == OPERATION_RENEW && operation->value != OPERATION_NIL;
    const char *why = token ? "with tokens rising, its process does not hold the lock when the token would have to be "
                              "given, and no acquire of unknown outcome makes up for it"
                      : operation->kind != OPERATION_ACQUIRE
                          ? "its process does not hold the lock, and no acquire of unknown outcome makes up for it"
                      : sweep->model == MODEL_FENCED_MUTEX
                          ? "with tokens rising, the lock is held by another when it would have to be granted, and no "
                            "release of unknown outcome makes up for it"
                          : "the lock is held until it returns, and no release of unknown outcome makes up for it";
    linearizable_violate(sweep->result, index, sweep->position, why);
    for (size_t each = 0; each < sweep->count; each++) {
        uint32_t grant = sweep->list[each].grant;
        if (grant != NOBODY && grant != index) linearizable_block(sweep->result, grant);
    }
}

static void owner_called(struct owner_sweep *sweep, uint32_t index) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    bool acquires = operation->kind == OPERATION_ACQUIRE;
    if (timeline_standing(sweep->timeline, operation) == STANDS_FREE) {
        for (size_t each = 0; operation->kind == OPERATION_RENEW && each < sweep->count; each++)
            renew_lease(sweep, &sweep->list[each], operation);
        if (operation->kind == OPERATION_RENEW) return;
        (acquires ? &sweep->acquires : &sweep->releases)->called[operation->process]++;
        return;
    }
    if (!limits_more(sweep->limits, sweep->under_way, sweep->under_way_count, sweep->under_way_room)) return;
    sweep->under_way[sweep->under_way_count++] = index;
    if (operation->kind == OPERATION_LOSS) loss_called(sweep, operation);
    else if (!acquires) proof_called(sweep, operation);
}

/* Takes one event of the prefix: whatever returns there is firm. False: no configuration is left. */
static bool owner_take(struct owner_sweep *sweep, uint32_t event) {
    uint32_t index = event / 2;
    const struct operation *operation = &sweep->timeline->object->list[index];
    if (event % 2 == 0) {
        owner_called(sweep, index);
        return true;
    }
    for (size_t each = 0; each < sweep->under_way_count; each++)
        if (sweep->under_way[each] == index) sweep->under_way[each] = sweep->under_way[--sweep->under_way_count];
    if (operation->kind == OPERATION_LOSS) return true;
    if (operation->kind == OPERATION_RELEASE) release_returned(sweep, operation);
    else if (operation->kind == OPERATION_RENEW) order_returned(sweep), renewal_returned(sweep, index);
    else if (sweep->model == MODEL_FENCED_MUTEX) order_returned(sweep);
    else acquire_returned(sweep, index);
    bool alive = false;
    for (size_t each = 0; each < sweep->count; each++) alive |= !sweep->list[each].dead;
    if (!alive && !sweep->limits->exceeded[0]) owner_violated(sweep, index);
    else if (alive) owner_prune(sweep);
    return alive;
}

/* Sweeps over one prefix. The result says violated, or stays as it was. */
static void owner_run(struct owner_sweep *sweep) {
    const struct concurrent_object *object = sweep->timeline->object;
    sweep->last_firm = limits_numbers(sweep->limits, sweep->processes);
    bool made = sweep->last_firm && supply_make(sweep, &sweep->releases) && supply_make(sweep, &sweep->acquires) &&
                limits_more(sweep->limits, sweep->list, 0, sweep->room);
    if (made) {
        for (uint32_t each = 0; each < object->count; each++) {
            const struct operation *operation = &object->list[each];
            if (timeline_standing(sweep->timeline, operation) == STANDS_FIRM &&
                operation->end > sweep->last_firm[operation->process])
                sweep->last_firm[operation->process] = operation->end;
        }
        sweep->list[0] = (struct owner_configuration){
            .holder = NOBODY, .grant = NOBODY, .tokens = {.newest = OPERATION_NIL, .known = OPERATION_NIL}};
        sweep->count = 1;
        if (sweep->model == MODEL_FENCED_MUTEX) made = token_order_begin(&sweep->order, sweep->timeline, sweep->result);
    }
    const struct timeline *timeline = sweep->timeline;
    for (uint32_t position = 0; made && position < timeline->length && position <= timeline->prefix; position++) {
        sweep->position = position;
        uint32_t event = timeline->events[position];
        if (event == TIMELINE_NOTHING) continue;
        if (!owner_take(sweep, event) || limits_late(sweep->limits)) break;
    }
    for (size_t each = 0; each < sweep->count; each++) owner_configuration_free(sweep, &sweep->list[each]);
    sweep->count = sweep->under_way_count = 0;
    supply_free(sweep, &sweep->releases);
    supply_free(sweep, &sweep->acquires);
    limits_numbers_free(sweep->limits, sweep->last_firm, sweep->processes);
}

/* The shortest prefix that is not linearizable, between one that is and the whole. */
static void bisect(struct owner_sweep *sweep) {
    uint32_t good = 0, bad = sweep->timeline->length - 1, guess = sweep->result->prefix;
    struct linearizable_result *result = sweep->result, found = *result, tried;
    while (bad - good > 1 && !limits_late(sweep->limits)) {
        uint32_t middle = guess > good && guess < bad ? guess : good + (bad - good) / 2;
        tried = (struct linearizable_result){.status = VERDICT_HOLDS, .configurations = found.configurations};
        sweep->timeline->prefix = middle;
        sweep->result = &tried;
        owner_run(sweep);
        bool violated_here = tried.status == VERDICT_VIOLATED;
        guess = violated_here && middle == guess ? guess - 1 : 0; /* a right guess needs one more step */
        if (violated_here) found = tried, bad = middle;
        else good = middle;
    }
    assert(found.status == VERDICT_VIOLATED);
    *result = found;
    result->prefix = bad;
    uint32_t last = sweep->timeline->events[bad] / 2;
    if (last == result->operation) return;
    linearizable_violate(result, last, bad, "when it has happened, there is no place for what is in its way");
    result->blocker_count = 0;
    linearizable_block(result, found.operation);
    for (int each = 0; each < found.blocker_count; each++)
        if (found.blockers[each] != last) linearizable_block(result, found.blockers[each]);
}

void linearizable_owner(struct timeline *timeline, const struct linearizable_settings *settings, struct limits *limits,
                        struct linearizable_result *result) {
    struct owner_sweep sweep = {.timeline = timeline,
                                .limits = limits,
                                .result = result,
                                .model = settings->model,
                                .keep_all = settings->keep_all,
                                .leases = settings->leases,
                                .processes = timeline->processes};
    bool fenced = settings->model == MODEL_FENCED_MUTEX;
    for (size_t each = 0; each < timeline->object->count; each++)
        sweep.timed |= timeline->object->list[each].lapses != OPERATION_NIL;
    if (!fenced || token_order_make(&sweep.order, timeline, limits)) owner_run(&sweep);
    if ((fenced || sweep.timed) && result->status == VERDICT_VIOLATED) bisect(&sweep);
    token_order_free(&sweep.order, limits);
    limits_free(limits, sweep.list, sweep.room * sizeof *sweep.list);
    limits_free(limits, sweep.under_way, sweep.under_way_room * sizeof *sweep.under_way);
}
