#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "harness/recogniser/lua/lua_run.h"
#include "harness/recogniser/redis_talk.h"

/* What a script does to locks. It is run in the toy server (lua/lua_run.h) in every situation that its lock can be in:
 *
 *   it takes a lock     if it makes it when it is free, and leaves it alone when others hold it
 *   it gives it back    if it removes it, or a hold of it, when it is the caller's own, and makes none when it is free
 *   it extends it       if it gives it a lease when it is the caller's own, and makes none when it is free
 *
 * and the answer that came is compared with the answers in these situations. */

enum script_role { SCRIPT_NOT_READ, SCRIPT_ACCESSES, SCRIPT_TAKES, SCRIPT_GIVES, SCRIPT_EXTENDS };

/* What an answer says. */
enum script_outcome { OUTCOME_NOT_CLEAR, OUTCOME_REFUSED, OUTCOME_DONE, OUTCOME_PART /* it is held further */ };

struct script_answer {
    enum script_outcome outcome;
    struct lua_answer answer, elements[LUA_ELEMENTS];
};

struct script_plan {
    enum script_role role;
    char reason[LUA_REASON + 64];    /* SCRIPT_NOT_READ */
    int locks[LUA_KEYS], lock_count; /* words of the command */
    char owner[OWNER_ROOM];
    int64_t lease_ms;
    enum wire_mode mode;
    struct script_answer answers[LUA_SITUATIONS];
    int answer_count;
    struct lua_touched touched[LUA_TOUCHED];
    int touched_count;
    const struct lock_hint *hint;
};

enum { FIRST_KEY = 3 }; /* EVAL script count key ... */

/* --- scripts --- */

void script_remember(struct recogniser *recogniser, struct span text, char name[static SHA1_HEX]) {
    sha1_hex(text, name);
    if (!text_table_find(&recogniser->scripts, text_span(name)))
        text_table_put(&recogniser->scripts, text_span(name), lua_script_read(text));
}

void script_name_copy(struct span word, char name[static SHA1_HEX]) {
    struct short_text text = short_text_in(name, SHA1_HEX);
    for (size_t each = 0; each < word.length; each++)
        short_text_byte(&text, (char)tolower((unsigned char)word.bytes[each]));
}

/* --- which role --- */

static bool touches(const struct lua_run *run) {
    return run->takes || run->gives || run->deletes || run->extends || run->changes;
}

static enum script_role role_of(const struct lua_run *runs, bool is_known_lock) {
    const struct lua_run *unheld = &runs[LOCK_IS_FREE], *others = &runs[LOCK_IS_OTHERS];
    const struct lua_run *own = &runs[LOCK_IS_OWN], *shared = &runs[LOCK_IS_OWN_SHARED];
    if (unheld->takes && !touches(others)) return SCRIPT_TAKES;
    if (unheld->takes || unheld->changes) return SCRIPT_ACCESSES;
    bool gives = own->gives || shared->gives;
    if (gives && (!touches(others) || (is_known_lock && !others->changes))) return SCRIPT_GIVES;
    bool extends = (own->extends || shared->extends) && !own->deletes && !own->changes;
    return extends && !touches(others) ? SCRIPT_EXTENDS : SCRIPT_ACCESSES;
}

static enum script_outcome outcome_of(enum script_role role, enum lua_situation situation, const struct lua_run *run) {
    switch (role) {
    case SCRIPT_TAKES: return run->takes || (situation >= LOCK_IS_OWN && touches(run)) ? OUTCOME_DONE : OUTCOME_REFUSED;
    case SCRIPT_GIVES:
        if (run->deletes) return OUTCOME_DONE;
        if (run->gives) return situation == LOCK_IS_OWN_TWICE ? OUTCOME_PART : OUTCOME_DONE;
        return OUTCOME_REFUSED;
    default: return run->extends ? OUTCOME_DONE : OUTCOME_REFUSED;
    }
}

/* --- runs --- */

static void call_make(const struct redis_request *request, const struct lua_script *script, struct lua_call *call) {
    int64_t keys = redis_word_number(request, 2, 0), words = request->word_count - FIRST_KEY;
    *call = (struct lua_call){.script = script};
    if (keys < 0 || keys > words) keys = 0;
    call->key_count = keys < LUA_KEYS ? (int)keys : LUA_KEYS;
    for (int key = 0; key < call->key_count; key++) call->keys[key] = request->words[FIRST_KEY + key].text;
    for (int64_t each = keys; each < words && call->argument_count < LUA_ARGUMENTS; each++)
        call->arguments[call->argument_count++] = request->words[FIRST_KEY + each].text;
}

static void runs_make(struct lua_call *call, int lock, struct lua_run *runs) {
    call->lock = lock;
    for (int situation = 0; situation < LUA_SITUATIONS; situation++) {
        call->situation = (enum lua_situation)situation;
        lua_run(call, &runs[situation]);
    }
}

static void touched_add(struct script_plan *plan, const struct lua_run *run) {
    for (int each = 0; each < run->touched_count; each++) {
        int known = 0;
        while (known < plan->touched_count && plan->touched[known].key != run->touched[each].key) known++;
        if (known == LUA_TOUCHED) return;
        if (known == plan->touched_count) plan->touched[plan->touched_count++] = run->touched[each];
        plan->touched[known].writes |= run->touched[each].writes;
    }
}

static void plan_refuse(struct script_plan *plan, const char *what, const char *detail) {
    struct short_text reason = short_text_in(plan->reason, sizeof plan->reason);
    plan->role = SCRIPT_NOT_READ;
    short_text_say(&reason, what);
    short_text_say(&reason, detail);
}

/* Copies what the runs say of the owner, the lease and the answers. */
static void plan_fill(struct script_plan *plan, const struct lua_run *runs) {
    const struct lua_run *telling = &runs[plan->role == SCRIPT_TAKES ? LOCK_IS_FREE : LOCK_IS_OWN];
    if (!telling->owner[0]) telling = &runs[LOCK_IS_OWN_SHARED];
    struct redis_word owner = {.text = text_span(telling->owner)};
    owner.hash = text_hash(owner.text);
    redis_owner_copy(&owner, plan->owner);
    plan->lease_ms = telling->lease_ms;
    /* Readers take the lock beside others who read, and give back what they have as readers. */
    const struct lua_run *reading = &runs[plan->role == SCRIPT_TAKES ? LOCK_IS_SHARED_BY_OTHERS : LOCK_IS_OWN_SHARED];
    bool shares = reading->has_modes && (reading->takes || reading->gives);
    plan->mode = shares ? WIRE_SHARED : WIRE_EXCLUSIVE;
    plan->answer_count = 0;
    for (int situation = 0; situation < LUA_SITUATIONS; situation++) {
        const struct lua_run *run = &runs[situation];
        struct script_answer *answer = &plan->answers[plan->answer_count++];
        answer->outcome = outcome_of(plan->role, (enum lua_situation)situation, run);
        answer->answer = run->answer;
        memcpy(answer->elements, run->elements, sizeof answer->elements);
        bool by_others = plan->role != SCRIPT_TAKES && situation == LOCK_IS_SHARED_BY_OTHERS;
        if (by_others) plan->answer_count--; /* as LOCK_IS_OTHERS */
    }
}

/* Looks at one KEYS as the lock; -1: at all of them. Returns whether it is one. */
static bool plan_try(struct script_plan *plan, const struct redis_talk *talk, const struct redis_request *request,
                     struct lua_call *call, int lock) {
    struct lua_run runs[LUA_SITUATIONS];
    runs_make(call, lock, runs);
    for (int situation = 0; situation < LUA_SITUATIONS; situation++) {
        if (runs[situation].reason[0]) {
            plan_refuse(plan, "a script that is not understood: ", runs[situation].reason);
            return true;
        }
        touched_add(plan, &runs[situation]);
    }
    int word = FIRST_KEY + (lock < 0 ? 0 : lock);
    plan->role = role_of(runs, lock_key_is(talk, request, word));
    if (plan->role == SCRIPT_ACCESSES) return false;
    bool takes = plan->role == SCRIPT_TAKES;
    if (lock < 0 && runs[takes ? LOCK_IS_FREE : LOCK_IS_OWN].locks_made < call->key_count) return false;
    plan_fill(plan, runs);
    plan->lock_count = lock < 0 ? call->key_count : 1;
    for (int each = 0; each < plan->lock_count; each++) plan->locks[each] = word + each;
    return true;
}

static void plan_by_script(struct script_plan *plan, const struct redis_talk *talk, const struct redis_request *request,
                           const struct lua_script *script) {
    struct lua_call call;
    call_make(request, script, &call);
    plan->role = SCRIPT_ACCESSES;
    if (request->more_words || redis_word_number(request, 2, 0) > LUA_KEYS) {
        plan_refuse(plan, "a script with more words than are looked at", "");
        return;
    }
    bool all = script->loops_keys && call.key_count > 1;
    if (all && plan_try(plan, talk, request, &call, -1)) return;
    if (call.key_count == 0) plan_refuse(plan, "a script without KEYS", "");
    for (int lock = 0; lock < call.key_count && lock < 4; lock++)
        if (plan_try(plan, talk, request, &call, lock)) return;
    plan->role = call.key_count > 0 ? SCRIPT_ACCESSES : SCRIPT_NOT_READ;
    for (int each = 0; each < plan->touched_count; each++)
        plan->touched[each].writes |= lua_script_may_write(script, plan->touched[each].key);
}

/* --- by a hint --- */

static void plan_by_hint(struct script_plan *plan, const struct redis_request *request, const struct lock_hint *hint) {
    static const enum script_role ROLES[] = {[HINT_ACQUIRES] = SCRIPT_TAKES,
                                             [HINT_RELEASES] = SCRIPT_GIVES,
                                             [HINT_EXTENDS] = SCRIPT_EXTENDS,
                                             [HINT_HARMLESS] = SCRIPT_ACCESSES};
    int64_t keys = redis_word_number(request, 2, 0);
    int owner = FIRST_KEY + (int)(keys < WORDS_MOST ? keys : WORDS_MOST) + hint->owner_argument - 1;
    int lease = owner - hint->owner_argument + hint->lease_argument;
    plan->hint = hint;
    plan->role = request->word_count > FIRST_KEY ? ROLES[hint->action] : SCRIPT_ACCESSES;
    plan->locks[0] = FIRST_KEY;
    plan->lock_count = 1;
    if (hint->owner_argument > 0 && owner > 0 && owner < request->word_count)
        redis_owner_copy(&request->words[owner], plan->owner);
    plan->lease_ms = hint->lease_argument > 0 ? redis_word_number(request, lease, -1) : -1;
}

/* --- answers --- */

static bool is_error(const struct redis_value *reply) {
    return reply->type == '-' || reply->type == '!';
}

/* How well an answer of a run fits the one that came: 0 not, 1 as one of many, 2 exactly. */
static int answer_fits(const struct lua_answer *answer, const struct redis_value *reply) {
    switch (answer->kind) {
    case ANSWER_NULL: return reply->type == '_' ? 2 : 0;
    case ANSWER_NUMBER:
        if (reply->type != ':') return 0;
        return !answer->is_known ? 1 : reply->number == answer->number ? 2 : 0;
    case ANSWER_TEXT: return reply->type == '$' ? 1 : 0;
    case ANSWER_STATUS: return reply->type == '+' || reply->type == '$' ? 2 : 0;
    case ANSWER_ERROR: return is_error(reply) ? 2 : 0;
    default: return reply->type == '*' && reply->number == answer->number ? 1 : 0;
    }
}

/* A list fits as well as its elements do. `element`: only this one counts, from 0; -1: all. */
static int list_fits(const struct script_answer *answer, const struct redis_value *reply, int element) {
    struct span rest = reply->elements;
    struct redis_value value;
    int fits = answer_fits(&answer->answer, reply);
    if (answer->answer.kind != ANSWER_LIST || fits == 0) return fits;
    fits = 2;
    for (int each = 0; each < answer->answer.number && each < LUA_ELEMENTS; each++) {
        if (!redis_value_take(&rest, &value)) return 0;
        int here = answer_fits(&answer->elements[each], &value);
        if ((element < 0 || element == each) && here < fits) fits = here;
    }
    return fits;
}

static enum script_outcome hint_outcome(const struct lock_hint *hint, const struct redis_value *reply) {
    bool done = (reply->type == ':' && reply->number == 1) || span_is_word(reply->text, "OK");
    if (hint->done_answer && strcmp(hint->done_answer, "nil") == 0) done = reply->type == '_';
    else if (hint->done_answer) done = span_is_word(reply->text, hint->done_answer);
    return done ? OUTCOME_DONE : OUTCOME_REFUSED;
}

/* What the answer says of the lock with this place among the plan's. */
static enum script_outcome script_outcome_of(const struct script_plan *plan, const struct redis_value *reply,
                                             int place) {
    if (plan->hint) return hint_outcome(plan->hint, reply);
    bool each = plan->lock_count > 1 && reply->type == '*' && reply->number == plan->lock_count;
    int best[OUTCOME_PART + 1] = {0};
    for (int at = 0; at < plan->answer_count; at++) {
        int fits = list_fits(&plan->answers[at], reply, each ? place : -1);
        enum script_outcome outcome = plan->answers[at].outcome;
        if (fits > best[outcome]) best[outcome] = fits;
    }
    /* Of several holds one may be left, or not: it is the last one that counts. */
    if (best[OUTCOME_DONE] >= best[OUTCOME_PART]) best[OUTCOME_PART] = 0;
    int done = best[OUTCOME_DONE] > best[OUTCOME_PART] ? OUTCOME_DONE : OUTCOME_PART;
    if (best[done] == best[OUTCOME_REFUSED]) return OUTCOME_NOT_CLEAR;
    return best[done] > best[OUTCOME_REFUSED] ? (enum script_outcome)done : OUTCOME_REFUSED;
}

/* --- events --- */

static struct wire_event like_plan(const struct script_plan *plan) {
    return (struct wire_event){.owner = plan->owner, .lease_ms = plan->lease_ms, .mode = plan->mode, .reason = ""};
}

void script_asked(struct redis_talk *talk, struct redis_request *request) {
    struct script_plan *plan = calloc(1, sizeof *plan);
    if (!plan) abort();
    request->plan = plan;
    const struct recogniser *recogniser = talk->session->recogniser;
    const struct lock_hint *hint = hint_find(recogniser, HINT_SCRIPT, text_span(request->script));
    const struct lua_script *script = text_table_find(&recogniser->scripts, text_span(request->script));
    if (hint) plan_by_hint(plan, request, hint);
    else if (script) plan_by_script(plan, talk, request, script);
    else plan_refuse(plan, "EVALSHA of a script that is not known: is it a lock? name it in [locks]", "");
    for (int each = 0; each < plan->lock_count && plan->role == SCRIPT_TAKES; each++) {
        struct wire_event like = like_plan(plan);
        redis_lock_hand(talk, request, LOCK_ASKED, plan->locks[each], &like);
    }
}

static void script_lock_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply,
                             int place) {
    static const enum wire_event_kind KINDS[][2] = {[SCRIPT_TAKES] = {LOCK_REFUSED, LOCK_GRANTED},
                                                    [SCRIPT_GIVES] = {LOCK_RELEASE_REFUSED, LOCK_RELEASED},
                                                    [SCRIPT_EXTENDS] = {LOCK_EXTEND_REFUSED, LOCK_EXTENDED}};
    const struct script_plan *plan = request->plan;
    char said[64];
    struct short_text reason = short_text_in(said, sizeof said);
    struct wire_event like = like_plan(plan);
    enum script_outcome outcome = script_outcome_of(plan, reply, place);
    /* It may answer the same when the lock was not there any more. */
    if (outcome == OUTCOME_NOT_CLEAR && plan->role != SCRIPT_TAKES && !is_error(reply) &&
        lock_key_is_owned(talk, request, plan->locks[place], plan->owner))
        outcome = OUTCOME_DONE;
    bool failed = is_error(reply) && outcome != OUTCOME_REFUSED && outcome != OUTCOME_DONE;
    if (outcome == OUTCOME_NOT_CLEAR && !failed) {
        redis_not_recognised(talk, request, "the answer of the script does not say what became of the lock");
        return;
    }
    bool done = outcome >= OUTCOME_DONE && !failed;
    if (is_error(reply)) short_text_add(&reason, reply->text);
    like.reason = said;
    like.reenters = outcome == OUTCOME_PART;
    if (!done) like.refusal = plan->role == SCRIPT_TAKES ? REFUSED_HELD : REFUSED_NOT_HELD;
    if (failed) like.refusal = REFUSED_ERROR;
    redis_lock_hand(talk, request, KINDS[plan->role][done], plan->locks[place], &like);
}

void script_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    const struct script_plan *plan = request->plan;
    bool unknown = is_error(reply) && reply->text.length >= 8 && memcmp(reply->text.bytes, "NOSCRIPT", 8) == 0;
    bool is_lock = plan->role == SCRIPT_TAKES || plan->role == SCRIPT_GIVES || plan->role == SCRIPT_EXTENDS;
    for (int place = 0; place < plan->lock_count && is_lock; place++) script_lock_done(talk, request, reply, place);
    if (is_lock || unknown) return;
    if (plan->role == SCRIPT_NOT_READ) {
        if (!is_error(reply) || !request->in_multi) redis_not_recognised(talk, request, plan->reason);
        return;
    }
    if (plan->hint) return;
    for (int each = 0; each < plan->touched_count; each++) {
        struct lua_touched touched = plan->touched[each];
        int word = FIRST_KEY + touched.key;
        if (touched.key < 0) redis_not_recognised(talk, request, "a script with a key that is not among its KEYS");
        else if (word < request->word_count)
            redis_access_hand(talk, request, word, touched.writes ? DOES_CHANGE : DOES_READ);
    }
}
