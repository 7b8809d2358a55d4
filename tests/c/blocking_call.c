/* blocking_call SOCKET CLOCK STAGE: the live environment's waiting calls, against a real redis-server that listens on
 * the unix socket SOCKET and whose clock is the file CLOCK. STAGE is a path at which nothing is yet.
 *
 * The conductor runs in the main thread, two players - a worker each, with a watchdog - in threads of their own. Every
 * case plays one situation and says what came of it; virtual time must stand exactly where it is meant to, and real
 * time must have been short.
 *
 * Prints one JSON line. Exit status: 0 every case as meant, 1 one was not, 2 bad usage or no server. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/conductor.h"
#include "harness/env_live.h"

enum { PLAYERS = 2, STUCK_MS = 20000, LONG_NAP_MS = 3600000, REPLY_LIMIT_MS = 1000 };
static const int64_t MS_NS = CLOCK_NS_PER_MS;

struct player;
typedef void task(struct player *player);

struct watch { /* what a watchdog does and did */
    int64_t nap_ms;
    int naps_most; /* it ends by itself after so many, 0: when it is asked to */
    bool at_checkpoint;
    _Atomic int wakes;
    _Atomic bool saw_stopping;
};

struct player {
    struct theatre *theatre;
    int strand;
    pthread_t thread;
    struct strand worker, watchdog;
    struct env *env;
    task *task; /* NULL: go home */
    /* What tasks leave behind: */
    int64_t began_ns, ended_ns;
    enum env_reply_kind kind, next_kind;
    char text[32];
    bool started, restarted;
    struct watch watch;
    /* Stage and conductor order all of this already, but through two mappings of one file, which ThreadSanitizer cannot
     * know to be the same memory. */
    _Atomic int tasks_done;
};

struct theatre {
    struct stage *stage;
    struct conductor *conductor;
    const char *socket;
    struct player players[PLAYERS];
    char why[256]; /* the first thing that was not as meant */
};

/* --- players --- */

static void mask_sigpipe(int how) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(how, &set, NULL);
}

static void *player_main(void *argument) {
    struct player *player = argument;
    mask_sigpipe(SIG_UNBLOCK); /* as in a client: a lost connection must not end it */
    strand_enter(&player->worker);
    const struct env_live_options options = {.worker = player->worker,
                                             .watchdog = player->watchdog,
                                             .nodes = {player->theatre->socket},
                                             .node_count = 1,
                                             .reply_limit_ms = REPLY_LIMIT_MS,
                                             .stream = (uint64_t)player->strand};
    player->env = env_live_open(&options);
    for (;;) {
        strand_park(&player->worker, STRAND_IDLE);
        if (!player->task) break;
        player->began_ns = env_mono_ns(player->env);
        player->task(player);
        player->ended_ns = env_mono_ns(player->env);
        player->tasks_done++;
    }
    env_live_close(player->env);
    strand_end(&player->worker, &player->worker);
    return NULL;
}

static void keep(struct player *player, const struct env_reply *reply) {
    const struct env_reply *text = reply->kind == ENV_REPLY_ARRAY && reply->count == 2 ? &reply->items[1] : reply;
    player->kind = reply->kind;
    snprintf(player->text, sizeof player->text, "%s", text->text ? text->text : "");
}

static void pop_for_7_s(struct player *player) {
    keep(player, env_command_blocking(player->env, 0, 7000, "BLPOP nobody-pushes 0"));
}

static void pop_longer_than_the_server(struct player *player) {
    keep(player, env_command_blocking(player->env, 0, 7000, "BLPOP nobody-pushes 7"));
}

static void pop_for_60_s(struct player *player) {
    keep(player, env_command_blocking(player->env, 0, 60000, "BLPOP queue 0"));
}

static void sleep_and_push(struct player *player) {
    env_sleep(player->env, 5000);
    keep(player, env_command(player->env, 0, "RPUSH queue %s", "hello"));
}

static void ask_time(struct player *player) {
    const struct env_reply *reply = env_command(player->env, 0, "TIME");
    player->kind = reply->kind;
    snprintf(player->text, sizeof player->text, "%s.%s", reply->count == 2 ? reply->items[0].text : "?",
             reply->count == 2 ? reply->items[1].text : "?");
}

static void pop_and_ping(struct player *player) {
    player->kind = env_command_blocking(player->env, 0, 7000, "BLPOP nobody-pushes 0")->kind;
    player->next_kind = env_command(player->env, 0, "PING")->kind;
}

static void ping(struct player *player) {
    player->kind = env_command(player->env, 0, "PING")->kind;
}

static void cut_everybody_else(struct player *player) {
    env_sleep(player->env, 50);
    keep(player, env_command(player->env, 0, "CLIENT KILL TYPE normal SKIPME yes"));
}

/* --- subscriptions: names and messages hold zero bytes --- */

static const char NEWS[] = {'n', '\0', 'w'}, SPORT[] = {'n', '\0', 's'};

static void publish(struct player *player, const char channel[3], char word) {
    env_command(player->env, 0, "PUBLISH %b %b", channel, (size_t)3, (const char[]){word, '\0'}, (size_t)2);
}

/* Appends the letter of the next message to what was heard; '-': none came. */
static void hear(struct player *player, int64_t limit_ms) {
    const struct env_reply *reply = env_message(player->env, 0, limit_ms);
    size_t heard = strlen(player->text);
    bool whole = reply->kind == ENV_REPLY_STRING && reply->length == 2 && reply->text[1] == '\0';
    if (heard < sizeof player->text - 1) player->text[heard] = whole ? reply->text[0] : '-';
}

static void follow(struct player *player, const char channel[3]) {
    if (env_subscribe(player->env, 0, channel, 3) != OUTCOME_OK) hear(player, 0);
}

static void hear_one(struct player *player) {
    follow(player, NEWS);
    hear(player, -1);
    env_unsubscribe(player->env, 0, NEWS, 3);
}

/* What comes while nobody listens is kept, in order, also across further subscriptions; then nothing, for 7 s. */
static void hear_late(struct player *player) {
    follow(player, NEWS);
    env_sleep(player->env, 10000);
    follow(player, SPORT);
    for (int message = 0; message < 4; message++) hear(player, 1000);
    hear(player, 0);
    hear(player, 7000);
    env_unsubscribe(player->env, 0, NEWS, 3);
    hear(player, -1);
    env_unsubscribe(player->env, 0, SPORT, 3);
}

static void tell_one(struct player *player) {
    env_sleep(player->env, 5000);
    publish(player, NEWS, 'a');
}

/* What is told on a channel to which nobody listens yet, or any more, is an x. */
static void tell_many(struct player *player) {
    env_sleep(player->env, 5000);
    for (char word = 'a'; word < 'd'; word++) publish(player, NEWS, word);
    publish(player, SPORT, 'x');
    env_sleep(player->env, 5500);
    publish(player, SPORT, 'd');
    env_sleep(player->env, 9500);
    publish(player, NEWS, 'x');
    publish(player, SPORT, 'e');
}

/* A subscription that is lost ends the wait at once; what follows finds none, until it is made anew. */
static void hear_after_loss(struct player *player) {
    follow(player, NEWS);
    hear(player, 60000);
    hear(player, 60000);
    hear_one(player);
}

static void cut_and_tell(struct player *player) {
    env_sleep(player->env, 5000);
    env_command(player->env, 0, "CLIENT KILL TYPE pubsub");
    tell_one(player);
}

static void hear_nothing_for_50_ms(struct player *player) {
    follow(player, NEWS);
    hear(player, 50);
    env_unsubscribe(player->env, 0, NEWS, 3);
}

static void tell_after_50_ms(struct player *player) {
    env_sleep(player->env, 50);
    publish(player, NEWS, 'a');
}

/* --- watchdogs --- */

static void renew(struct env *env, void *argument) {
    struct watch *watch = argument;
    for (int nap = 0; watch->naps_most == 0 || nap < watch->naps_most; nap++) {
        env_sleep(env, watch->nap_ms);
        if (env_watchdog_stopping(env)) break;
        watch->wakes++;
        if (watch->at_checkpoint) env_checkpoint(env, "renewing");
    }
    watch->saw_stopping = env_watchdog_stopping(env);
}

static void watched_sleep(struct player *player, int64_t duration_ms) {
    player->started = env_watchdog_start(player->env, renew, &player->watch);
    env_sleep(player->env, duration_ms);
    env_watchdog_stop(player->env);
}

static void work_for_35_s(struct player *player) {
    watched_sleep(player, 35000);
}

static void work_for_50_ms(struct player *player) {
    watched_sleep(player, 50);
}

/* The first watchdog ends by itself; nobody stops it before the second is started. */
static void outlive_the_watchdog(struct player *player) {
    player->started = env_watchdog_start(player->env, renew, &player->watch);
    env_sleep(player->env, 35000);
    player->restarted = env_watchdog_start(player->env, renew, &player->watch);
    env_sleep(player->env, 35000);
    env_watchdog_stop(player->env);
}

static void stand_at_checkpoint(struct player *player) {
    env_checkpoint(player->env, "standing");
}

/* --- the theatre --- */

static bool meant(struct theatre *theatre, bool good, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool meant(struct theatre *theatre, bool good, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!good && !theatre->why[0]) vsnprintf(theatre->why, sizeof theatre->why, format, arguments);
    va_end(arguments);
    return good;
}

static bool run(struct theatre *theatre, int players, int64_t for_ms) {
    int awaited[PLAYERS];
    for (int each = 0; each < players; each++) awaited[each] = theatre->players[each].strand;
    int64_t until_ns = for_ms ? conductor_mono_ns(theatre->conductor) + for_ms * MS_NS : INT64_MAX;
    enum conductor_result result = conductor_run(theatre->conductor, awaited, players, until_ns, STUCK_MS);
    for (int each = 0; each < players; each++) (void)atomic_load(&theatre->players[each].tasks_done);
    return meant(theatre, result == (for_ms ? CONDUCTOR_TIME : CONDUCTOR_DONE), "conductor_run said %d", (int)result);
}

static void give(struct theatre *theatre, int player, task *work) {
    theatre->players[player].task = work;
    conductor_step(theatre->conductor, theatre->players[player].strand, &(struct step){.kind = STEP_WORKLOAD});
}

static bool enter(struct theatre *theatre, const char *stage, const char *clock, enum history_time time) {
    struct history_error error;
    if (!stage_create(stage, time, 1, &error) || !(theatre->stage = stage_open(stage, &error)) ||
        !(theatre->conductor = conductor_open(stage, &error)) ||
        conductor_add_server(theatre->conductor, time == HISTORY_TIME_VIRTUAL ? clock : NULL, theatre->socket, &error) <
            0)
        return meant(theatre, false, "%s", error.text);
    for (int each = 0; each < PLAYERS; each++) {
        struct player *player = &theatre->players[each];
        int places[2] = {conductor_add_strand(theatre->conductor), conductor_add_strand(theatre->conductor)};
        struct strand strand = {.stage = theatre->stage, .yield_fd = conductor_yield_fd(theatre->conductor)};
        player->theatre = theatre;
        player->strand = places[0];
        player->worker = player->watchdog = strand;
        player->worker.place = &theatre->stage->strands[places[0]];
        player->worker.turn_fd = conductor_turn_fd(theatre->conductor, places[0]);
        player->watchdog.place = &theatre->stage->strands[places[1]];
        player->watchdog.turn_fd = conductor_turn_fd(theatre->conductor, places[1]);
        conductor_expect(theatre->conductor, player->strand);
        if (pthread_create(&player->thread, NULL, player_main, player) != 0) abort();
    }
    mask_sigpipe(SIG_BLOCK); /* as in the driver: Python ignores it */
    unlink(stage);           /* everybody has it mapped */
    return run(theatre, PLAYERS, 0);
}

static void leave(struct theatre *theatre) {
    for (int each = 0; each < PLAYERS; each++) give(theatre, each, NULL);
    run(theatre, PLAYERS, 0);
    for (int each = 0; each < PLAYERS; each++) pthread_join(theatre->players[each].thread, NULL);
    conductor_close(theatre->conductor);
    stage_close(theatre->stage);
}

static int64_t took_ns(const struct theatre *theatre, int player) {
    return theatre->players[player].ended_ns - theatre->players[player].began_ns;
}

static bool took_exactly(struct theatre *theatre, int player, int64_t duration_ms) {
    int64_t took = took_ns(theatre, player);
    return meant(theatre, took == duration_ms * MS_NS, "%" PRId64 " ns instead of %" PRId64 " ms", took, duration_ms);
}

static enum strand_state watchdog_state(const struct theatre *theatre, int player) {
    return conductor_state(theatre->conductor, theatre->players[player].strand + 1);
}

/* --- cases in virtual time --- */

static bool nobody_pushes(struct theatre *theatre) {
    struct player *player = &theatre->players[0];
    give(theatre, 0, pop_for_7_s);
    if (!run(theatre, 1, 0) || !took_exactly(theatre, 0, 7001 + REPLY_LIMIT_MS)) return false;
    if (!meant(theatre, player->kind == ENV_REPLY_UNKNOWN, "reply of kind %d", (int)player->kind)) return false;
    int64_t wall_us = conductor_server_wall_us(theatre->conductor, 0);
    char expected[32];
    snprintf(expected, sizeof expected, "%" PRId64 ".%" PRId64, wall_us / 1000000, wall_us % 1000000);
    give(theatre, 0, ask_time); /* on a new connection: the old one may still bring the answer to the pop */
    return run(theatre, 1, 0) && meant(theatre, strcmp(player->text, expected) == 0, "the server's clock: %s, not %s",
                                       player->text, expected);
}

/* The server gives up when more than its limit has passed, so both do at the same moment here: the server's word
 * counts, every time. */
static bool server_gives_up_too(struct theatre *theatre) {
    for (int round = 0; round < 100; round++) {
        struct player *player = &theatre->players[0];
        give(theatre, 0, pop_longer_than_the_server);
        if (!run(theatre, 1, 0) || !took_exactly(theatre, 0, 7001)) return false;
        if (!meant(theatre, player->kind == ENV_REPLY_NIL, "round %d: kind %d", round, (int)player->kind)) return false;
    }
    return true;
}

static bool pushed_after_5_s(struct theatre *theatre) {
    struct player *player = &theatre->players[0];
    give(theatre, 0, pop_for_60_s);
    give(theatre, 1, sleep_and_push);
    return run(theatre, 2, 0) && took_exactly(theatre, 0, 5000) && took_exactly(theatre, 1, 5000) &&
           meant(theatre, player->kind == ENV_REPLY_ARRAY && strcmp(player->text, "hello") == 0,
                 "kind %d, value \"%s\"", (int)player->kind, player->text);
}

static bool renewed_three_times(struct theatre *theatre) {
    for (int round = 0; round < 3; round++) { /* started, stopped, started again */
        struct player *player = &theatre->players[0];
        player->watch = (struct watch){.nap_ms = 10000};
        give(theatre, 0, work_for_35_s);
        if (!run(theatre, 1, 0) || !took_exactly(theatre, 0, 35000)) return false;
        if (!meant(theatre, player->started && player->watch.wakes == 3 && player->watch.saw_stopping,
                   "round %d: started %d, %d wake-ups, stopping seen %d", round, player->started, player->watch.wakes,
                   player->watch.saw_stopping))
            return false;
    }
    return true;
}

static bool watchdog_ends_by_itself(struct theatre *theatre) {
    struct player *player = &theatre->players[0];
    player->watch = (struct watch){.nap_ms = 10000, .naps_most = 2};
    give(theatre, 0, outlive_the_watchdog);
    return run(theatre, 1, 0) && took_exactly(theatre, 0, 70000) &&
           meant(theatre, player->restarted && player->watch.wakes == 4, "restarted %d, %d wake-ups", player->restarted,
                 player->watch.wakes);
}

/* A watchdog that is held stays so, whoever asks it to stop, until the driver lets it go on. */
static bool held_watchdog_stays(struct theatre *theatre, task *work, int64_t nap_ms) {
    struct player *player = &theatre->players[0];
    player->watch = (struct watch){.nap_ms = nap_ms, .at_checkpoint = true};
    conductor_arm(theatre->conductor, player->strand + 1, "renewing", 1);
    give(theatre, 0, work);
    if (!run(theatre, 1, 20 * nap_ms)) return false;
    enum strand_state state = watchdog_state(theatre, 0);
    if (!meant(theatre, state == STRAND_HELD, "the held watchdog is in state %d", (int)state)) return false;
    conductor_continue(theatre->conductor, player->strand + 1);
    return run(theatre, 1, 0) &&
           meant(theatre, player->watch.wakes == 1 && player->watch.saw_stopping, "%d wake-ups, stopping seen %d",
                 player->watch.wakes, player->watch.saw_stopping);
}

static bool held_in_virtual_time(struct theatre *theatre) {
    return held_watchdog_stays(theatre, work_for_35_s, 10000);
}

/* The connection was lost while an answer was awaited: unknown, and the next command has a new one. One that is lost
 * while nothing is under way is made anew unnoticed. The conductor's own link to the server goes each time too. */
static bool connection_lost(struct theatre *theatre) {
    struct player *player = &theatre->players[0];
    if (!nobody_pushes(theatre)) return false;
    give(theatre, 0, pop_and_ping);
    give(theatre, 1, cut_everybody_else);
    if (!run(theatre, 2, 0) || !took_exactly(theatre, 0, 50)) return false;
    if (!meant(theatre, player->kind == ENV_REPLY_UNKNOWN && player->next_kind == ENV_REPLY_STATUS, "kinds %d and %d",
               (int)player->kind, (int)player->next_kind))
        return false;
    give(theatre, 1, cut_everybody_else);
    if (!run(theatre, 2, 0)) return false;
    give(theatre, 0, ping);
    return run(theatre, 1, 0) && meant(theatre, player->kind == ENV_REPLY_STATUS, "kind %d", (int)player->kind) &&
           nobody_pushes(theatre);
}

static bool heard(struct theatre *theatre, const char *expected) {
    return meant(theatre, strcmp(theatre->players[0].text, expected) == 0, "heard \"%s\" instead of \"%s\"",
                 theatre->players[0].text, expected);
}

static bool told_at_once(struct theatre *theatre) {
    for (int round = 0; round < 20; round++) {
        memset(theatre->players[0].text, 0, sizeof theatre->players[0].text);
        give(theatre, 0, hear_one);
        give(theatre, 1, tell_one);
        if (!run(theatre, 2, 0) || !took_exactly(theatre, 0, 5000) || !heard(theatre, "a")) return false;
    }
    return true;
}

static bool told_meanwhile(struct theatre *theatre) {
    give(theatre, 0, hear_late);
    give(theatre, 1, tell_many);
    return run(theatre, 2, 0) && heard(theatre, "abcd--e") && took_exactly(theatre, 0, 20000);
}

static bool subscription_lost(struct theatre *theatre) {
    give(theatre, 0, hear_after_loss);
    give(theatre, 1, cut_and_tell);
    return run(theatre, 2, 0) && heard(theatre, "--a") && took_exactly(theatre, 0, 10000);
}

/* --- cases in real time --- */

static bool stops_at_once(struct theatre *theatre) {
    struct player *player = &theatre->players[0];
    for (int round = 0; round < 3; round++) {
        player->watch = (struct watch){.nap_ms = LONG_NAP_MS};
        give(theatre, 0, work_for_50_ms);
        if (!run(theatre, 1, 0)) return false;
        int64_t took_ms = took_ns(theatre, 0) / MS_NS;
        if (!meant(theatre, player->started && player->watch.wakes == 0 && player->watch.saw_stopping && took_ms < 5000,
                   "round %d: started %d, %d wake-ups, stopping seen %d, %" PRId64 " ms", round, player->started,
                   player->watch.wakes, player->watch.saw_stopping, took_ms))
            return false;
    }
    return true;
}

static bool renews_in_real_time(struct theatre *theatre) {
    struct player *player = &theatre->players[0];
    player->watch = (struct watch){.nap_ms = 10};
    give(theatre, 0, work_for_50_ms);
    if (!run(theatre, 1, 0)) return false;
    int64_t most = took_ns(theatre, 0) / (10 * MS_NS);
    return meant(theatre, player->watch.wakes >= 1 && player->watch.wakes <= most, "%d wake-ups, at most %" PRId64,
                 player->watch.wakes, most);
}

static bool held_in_real_time(struct theatre *theatre) {
    return held_watchdog_stays(theatre, work_for_50_ms, 10) && stops_at_once(theatre);
}

/* A step begins when the trial is run, so a checkpoint that is armed after it was given is not missed. */
static bool step_waits_for_run(struct theatre *theatre) {
    struct player *player = &theatre->players[0];
    give(theatre, 0, stand_at_checkpoint);
    usleep(20000);
    conductor_arm(theatre->conductor, player->strand, "standing", 1);
    if (!run(theatre, 1, 0)) return false;
    enum strand_state state = conductor_state(theatre->conductor, player->strand);
    if (!meant(theatre, state == STRAND_HELD, "state %d instead of held", (int)state)) return false;
    conductor_continue(theatre->conductor, player->strand);
    return run(theatre, 1, 0);
}

static bool told_in_real_time(struct theatre *theatre) {
    give(theatre, 0, hear_nothing_for_50_ms);
    if (!run(theatre, 1, 0) || !heard(theatre, "-")) return false;
    int64_t took_ms = took_ns(theatre, 0) / MS_NS;
    if (!meant(theatre, took_ms >= 50, "gave up after %" PRId64 " ms", took_ms)) return false;
    give(theatre, 0, hear_one);
    give(theatre, 1, tell_after_50_ms);
    return run(theatre, 2, 0) && heard(theatre, "-a");
}

/* --- all of it --- */

struct scene {
    const char *name;
    bool (*play)(struct theatre *theatre);
    enum history_time time;
};

static const struct scene SCENES[] = {
    {"nobody_pushes", nobody_pushes, HISTORY_TIME_VIRTUAL},
    {"server_gives_up_too", server_gives_up_too, HISTORY_TIME_VIRTUAL},
    {"pushed_after_5_s", pushed_after_5_s, HISTORY_TIME_VIRTUAL},
    {"renewed_three_times", renewed_three_times, HISTORY_TIME_VIRTUAL},
    {"watchdog_ends_by_itself", watchdog_ends_by_itself, HISTORY_TIME_VIRTUAL},
    {"held_in_virtual_time", held_in_virtual_time, HISTORY_TIME_VIRTUAL},
    {"connection_lost", connection_lost, HISTORY_TIME_VIRTUAL},
    {"told_at_once", told_at_once, HISTORY_TIME_VIRTUAL},
    {"told_meanwhile", told_meanwhile, HISTORY_TIME_VIRTUAL},
    {"subscription_lost", subscription_lost, HISTORY_TIME_VIRTUAL},
    {"stops_at_once", stops_at_once, HISTORY_TIME_REAL},
    {"renews_in_real_time", renews_in_real_time, HISTORY_TIME_REAL},
    {"held_in_real_time", held_in_real_time, HISTORY_TIME_REAL},
    {"told_in_real_time", told_in_real_time, HISTORY_TIME_REAL},
    {"step_waits_for_run", step_waits_for_run, HISTORY_TIME_REAL},
};

/* A theatre that is not as meant is not cleared away: its threads may hang. */
static bool play(const struct scene *scene, const char *socket, const char *clock, const char *stage) {
    struct theatre *theatre = calloc(1, sizeof *theatre);
    if (!theatre) abort();
    theatre->socket = socket;
    int64_t began_ns = clock_real_mono_ns();
    bool good = enter(theatre, stage, clock, scene->time) && scene->play(theatre);
    if (good) leave(theatre);
    good = !theatre->why[0];
    printf("\"%s\": {\"ok\": %s, \"real_ms\": %" PRId64 ", \"why\": \"%s\"}, ", scene->name, good ? "true" : "false",
           (clock_real_mono_ns() - began_ns) / MS_NS, theatre->why);
    if (good) free(theatre);
    return good;
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: blocking_call SOCKET CLOCK STAGE\n"), 2;
    bool good = true;
    printf("{");
    for (size_t each = 0; each < sizeof SCENES / sizeof SCENES[0]; each++)
        good &= play(&SCENES[each], argv[1], argv[2], argv[3]);
    printf("\"ok\": %s}\n", good ? "true" : "false");
    fflush(stdout);
    if (!good) _exit(1); /* whatever the threads of a scene that failed are waiting for */
    return 0;
}
