/* blocking_call SOCKET CLOCK PAGE: the live environment's waiting calls, against a real redis-server that listens on
 * the unix socket SOCKET and whose clock is the file CLOCK. PAGE is a path where no file exists yet.
 *
 * The scheduler runs in the main thread, two clients - a worker with a watchdog each - in threads of their own. After
 * every case virtual time must be exact, and little real time must have passed.
 *
 * Prints one JSON line. Exit status: 0 every case passed, 1 one failed, 2 bad usage or no server. */
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

#include "harness/environment/env_live.h"
#include "harness/scheduler/clock.h"
#include "harness/scheduler/scheduler.h"

enum { CLIENTS = 2, STUCK_MS = 20000, LONG_SLEEP_MS = 3600000, REPLY_LIMIT_MS = 1000 };
static const int64_t MS_NS = CLOCK_NS_PER_MS;

struct test_client;
typedef void job(struct test_client *client);

struct watch { /* what a watchdog has to do, and what it did */
    int64_t sleep_ms;
    int sleeps_max; /* it ends by itself after this many; 0: when it is asked to */
    bool at_checkpoint;
    _Atomic int wakes;
    _Atomic bool saw_stopping;
};

struct test_client {
    struct fixture *fixture;
    int task;
    pthread_t thread;
    struct task worker, watchdog;
    struct env *env;
    job *job; /* NULL: end */
    /* Results of a job: */
    int64_t began_ns, ended_ns;
    enum env_reply_kind kind, next_kind;
    char text[32];
    bool started, restarted;
    struct watch watch;
    /* The shared page orders all of this already, but through two mappings of one file, which ThreadSanitizer cannot
     * know to be the same memory. */
    _Atomic int tasks_done;
};

struct fixture {
    struct shared_page *page;
    struct scheduler *scheduler;
    const char *socket;
    struct test_client clients[CLIENTS];
    char why[256]; /* the first expectation that failed */
};

/* --- clients --- */

static void mask_sigpipe(int how) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(how, &set, NULL);
}

static void *client_main(void *argument) {
    struct test_client *client = argument;
    mask_sigpipe(SIG_UNBLOCK); /* as in a client: a lost connection must not end it */
    task_enter(&client->worker);
    const struct env_live_options options = {.worker = client->worker,
                                             .watchdog = client->watchdog,
                                             .nodes = {client->fixture->socket},
                                             .node_count = 1,
                                             .reply_limit_ms = REPLY_LIMIT_MS,
                                             .stream = (uint64_t)client->task};
    client->env = env_live_open(&options);
    for (;;) {
        task_park(&client->worker, TASK_IDLE);
        if (!client->job) break;
        client->began_ns = env_mono_ns(client->env);
        client->job(client);
        client->ended_ns = env_mono_ns(client->env);
        client->tasks_done++;
    }
    env_live_close(client->env);
    task_end(&client->worker, &client->worker);
    return NULL;
}

static void keep_reply(struct test_client *client, const struct env_reply *reply) {
    const struct env_reply *text = reply->kind == ENV_REPLY_ARRAY && reply->count == 2 ? &reply->items[1] : reply;
    client->kind = reply->kind;
    snprintf(client->text, sizeof client->text, "%s", text->text ? text->text : "");
}

static void pop_for_7_s(struct test_client *client) {
    keep_reply(client, env_command_blocking(client->env, 0, 7000, "BLPOP nobody-pushes 0"));
}

static void pop_longer_than_the_server(struct test_client *client) {
    keep_reply(client, env_command_blocking(client->env, 0, 7000, "BLPOP nobody-pushes 7"));
}

static void pop_for_60_s(struct test_client *client) {
    keep_reply(client, env_command_blocking(client->env, 0, 60000, "BLPOP queue 0"));
}

static void sleep_and_push(struct test_client *client) {
    env_sleep(client->env, 5000);
    keep_reply(client, env_command(client->env, 0, "RPUSH queue %s", "hello"));
}

static void ask_time(struct test_client *client) {
    const struct env_reply *reply = env_command(client->env, 0, "TIME");
    client->kind = reply->kind;
    snprintf(client->text, sizeof client->text, "%s.%s", reply->count == 2 ? reply->items[0].text : "?",
             reply->count == 2 ? reply->items[1].text : "?");
}

static void pop_and_ping(struct test_client *client) {
    client->kind = env_command_blocking(client->env, 0, 7000, "BLPOP nobody-pushes 0")->kind;
    client->next_kind = env_command(client->env, 0, "PING")->kind;
}

static void ping(struct test_client *client) {
    client->kind = env_command(client->env, 0, "PING")->kind;
}

static void cut_other_connections(struct test_client *client) {
    env_sleep(client->env, 50);
    keep_reply(client, env_command(client->env, 0, "CLIENT KILL TYPE normal SKIPME yes"));
}

/* --- subscriptions: names and messages hold zero bytes --- */

static const char NEWS[] = {'n', '\0', 'w'}, SPORT[] = {'n', '\0', 's'};

static void publish(struct test_client *client, const char channel[3], char word) {
    env_command(client->env, 0, "PUBLISH %b %b", channel, (size_t)3, (const char[]){word, '\0'}, (size_t)2);
}

/* Appends the letter of the next message to the text; '-': none came. */
static void hear(struct test_client *client, int64_t limit_ms) {
    const struct env_reply *reply = env_message(client->env, 0, limit_ms);
    size_t heard = strlen(client->text);
    bool whole = reply->kind == ENV_REPLY_STRING && reply->length == 2 && reply->text[1] == '\0';
    if (heard < sizeof client->text - 1) client->text[heard] = whole ? reply->text[0] : '-';
}

static void follow(struct test_client *client, const char channel[3]) {
    if (env_subscribe(client->env, 0, channel, 3) != OUTCOME_OK) hear(client, 0);
}

static void hear_one(struct test_client *client) {
    follow(client, NEWS);
    hear(client, -1);
    env_unsubscribe(client->env, 0, NEWS, 3);
}

/* Messages that come while the client does not listen are kept, in order, also across further subscriptions; then none
 * comes for 7 s. */
static void hear_late(struct test_client *client) {
    follow(client, NEWS);
    env_sleep(client->env, 10000);
    follow(client, SPORT);
    for (int message = 0; message < 4; message++) hear(client, 1000);
    hear(client, 0);
    hear(client, 7000);
    env_unsubscribe(client->env, 0, NEWS, 3);
    hear(client, -1);
    env_unsubscribe(client->env, 0, SPORT, 3);
}

static void tell_one(struct test_client *client) {
    env_sleep(client->env, 5000);
    publish(client, NEWS, 'a');
}

/* A message on a channel that is not subscribed to yet, or any more, is an x. */
static void tell_many(struct test_client *client) {
    env_sleep(client->env, 5000);
    for (char word = 'a'; word < 'd'; word++) publish(client, NEWS, word);
    publish(client, SPORT, 'x');
    env_sleep(client->env, 5500);
    publish(client, SPORT, 'd');
    env_sleep(client->env, 9500);
    publish(client, NEWS, 'x');
    publish(client, SPORT, 'e');
}

/* A subscription that is lost ends the wait at once; later waits find none, until it is made anew. */
static void hear_after_loss(struct test_client *client) {
    follow(client, NEWS);
    hear(client, 60000);
    hear(client, 60000);
    hear_one(client);
}

static void cut_and_tell(struct test_client *client) {
    env_sleep(client->env, 5000);
    env_command(client->env, 0, "CLIENT KILL TYPE pubsub");
    tell_one(client);
}

static void hear_nothing_for_50_ms(struct test_client *client) {
    follow(client, NEWS);
    hear(client, 50);
    env_unsubscribe(client->env, 0, NEWS, 3);
}

static void tell_after_50_ms(struct test_client *client) {
    env_sleep(client->env, 50);
    publish(client, NEWS, 'a');
}

/* --- watchdogs --- */

static void renew(struct env *env, void *argument) {
    struct watch *watch = argument;
    for (int round = 0; watch->sleeps_max == 0 || round < watch->sleeps_max; round++) {
        env_sleep(env, watch->sleep_ms);
        if (env_watchdog_stopping(env)) break;
        watch->wakes++;
        if (watch->at_checkpoint) env_checkpoint(env, "renewing");
    }
    watch->saw_stopping = env_watchdog_stopping(env);
}

static void watched_sleep(struct test_client *client, int64_t duration_ms) {
    client->started = env_watchdog_start(client->env, renew, &client->watch);
    env_sleep(client->env, duration_ms);
    env_watchdog_stop(client->env);
}

static void work_for_35_s(struct test_client *client) {
    watched_sleep(client, 35000);
}

static void work_for_50_ms(struct test_client *client) {
    watched_sleep(client, 50);
}

/* In real time either thread may stand still for any time, so the work ends by what the watchdog did. */
static void work_until_it_renewed(struct test_client *client) {
    client->started = env_watchdog_start(client->env, renew, &client->watch);
    while (client->watch.wakes == 0) env_sleep(client->env, 5);
    env_watchdog_stop(client->env);
}

/* The first watchdog ends by itself, and is not stopped before the second is started. */
static void outlive_the_watchdog(struct test_client *client) {
    client->started = env_watchdog_start(client->env, renew, &client->watch);
    env_sleep(client->env, 35000);
    client->restarted = env_watchdog_start(client->env, renew, &client->watch);
    env_sleep(client->env, 35000);
    env_watchdog_stop(client->env);
}

static void stand_at_checkpoint(struct test_client *client) {
    env_checkpoint(client->env, "standing");
}

/* --- the fixture --- */

static bool expect(struct fixture *fixture, bool good, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool expect(struct fixture *fixture, bool good, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!good && !fixture->why[0]) vsnprintf(fixture->why, sizeof fixture->why, format, arguments);
    va_end(arguments);
    return good;
}

static bool run(struct fixture *fixture, int clients, int64_t for_ms) {
    int awaited[CLIENTS];
    for (int each = 0; each < clients; each++) awaited[each] = fixture->clients[each].task;
    int64_t until_ns = for_ms ? scheduler_mono_ns(fixture->scheduler) + for_ms * MS_NS : INT64_MAX;
    enum scheduler_result result = scheduler_run(fixture->scheduler, awaited, clients, false, until_ns, STUCK_MS);
    for (int each = 0; each < clients; each++) (void)atomic_load(&fixture->clients[each].tasks_done);
    return expect(fixture, result == (for_ms ? SCHEDULER_TIME : SCHEDULER_DONE), "scheduler_run returned %d",
                  (int)result);
}

static void start_job(struct fixture *fixture, int client, job *work) {
    fixture->clients[client].job = work;
    scheduler_step(fixture->scheduler, fixture->clients[client].task, &(struct step){.kind = STEP_WORKLOAD});
}

static bool enter(struct fixture *fixture, const char *page, const char *clock, enum history_time time) {
    struct history_error error;
    if (!shared_page_create(page, time, 1, SHARED_PAGE_TASKS, &error) ||
        !(fixture->page = shared_page_open(page, &error)) || !(fixture->scheduler = scheduler_open(page, &error)) ||
        scheduler_add_server(fixture->scheduler, time == HISTORY_TIME_VIRTUAL ? clock : NULL, fixture->socket, &error) <
            0)
        return expect(fixture, false, "%s", error.text);
    for (int each = 0; each < CLIENTS; each++) {
        struct test_client *client = &fixture->clients[each];
        int tasks[2] = {scheduler_add_task(fixture->scheduler), scheduler_add_task(fixture->scheduler)};
        struct task task = {.page = fixture->page, .yield_fd = scheduler_yield_fd(fixture->scheduler)};
        client->fixture = fixture;
        client->task = tasks[0];
        client->worker = client->watchdog = task;
        client->worker.place = &fixture->page->tasks[tasks[0]];
        client->worker.turn_fd = scheduler_turn_fd(fixture->scheduler, tasks[0]);
        client->watchdog.place = &fixture->page->tasks[tasks[1]];
        client->watchdog.turn_fd = scheduler_turn_fd(fixture->scheduler, tasks[1]);
        scheduler_expect(fixture->scheduler, client->task);
        if (pthread_create(&client->thread, NULL, client_main, client) != 0) abort();
    }
    mask_sigpipe(SIG_BLOCK); /* as in the driver: Python ignores it */
    unlink(page);            /* it is mapped */
    return run(fixture, CLIENTS, 0);
}

static void leave(struct fixture *fixture) {
    for (int each = 0; each < CLIENTS; each++) start_job(fixture, each, NULL);
    run(fixture, CLIENTS, 0);
    for (int each = 0; each < CLIENTS; each++) pthread_join(fixture->clients[each].thread, NULL);
    scheduler_close(fixture->scheduler);
    shared_page_close(fixture->page);
}

static int64_t took_ns(const struct fixture *fixture, int client) {
    return fixture->clients[client].ended_ns - fixture->clients[client].began_ns;
}

static bool took_exactly(struct fixture *fixture, int client, int64_t duration_ms) {
    int64_t took = took_ns(fixture, client);
    return expect(fixture, took == duration_ms * MS_NS, "%" PRId64 " ns instead of %" PRId64 " ms", took, duration_ms);
}

static enum task_state watchdog_state(const struct fixture *fixture, int client) {
    return scheduler_state(fixture->scheduler, fixture->clients[client].task + 1);
}

/* --- cases in virtual time --- */

static bool nobody_pushes(struct fixture *fixture) {
    struct test_client *client = &fixture->clients[0];
    start_job(fixture, 0, pop_for_7_s);
    if (!run(fixture, 1, 0) || !took_exactly(fixture, 0, 7001 + REPLY_LIMIT_MS)) return false;
    if (!expect(fixture, client->kind == ENV_REPLY_UNKNOWN, "reply of kind %d", (int)client->kind)) return false;
    int64_t wall_us = scheduler_server_wall_us(fixture->scheduler, 0);
    char expected[32];
    snprintf(expected, sizeof expected, "%" PRId64 ".%" PRId64, wall_us / 1000000, wall_us % 1000000);
    start_job(fixture, 0, ask_time); /* on a new connection: the old one may still bring the answer to the pop */
    return run(fixture, 1, 0) && expect(fixture, strcmp(client->text, expected) == 0, "the server's clock: %s, not %s",
                                        client->text, expected);
}

/* The server gives up when more than its limit has passed, so client and server give up at the same moment here. The
 * server's answer counts, every time. */
static bool server_gives_up_too(struct fixture *fixture) {
    for (int round = 0; round < 100; round++) {
        struct test_client *client = &fixture->clients[0];
        start_job(fixture, 0, pop_longer_than_the_server);
        if (!run(fixture, 1, 0) || !took_exactly(fixture, 0, 7001)) return false;
        if (!expect(fixture, client->kind == ENV_REPLY_NIL, "round %d: kind %d", round, (int)client->kind))
            return false;
    }
    return true;
}

static bool pushed_after_5_s(struct fixture *fixture) {
    struct test_client *client = &fixture->clients[0];
    start_job(fixture, 0, pop_for_60_s);
    start_job(fixture, 1, sleep_and_push);
    return run(fixture, 2, 0) && took_exactly(fixture, 0, 5000) && took_exactly(fixture, 1, 5000) &&
           expect(fixture, client->kind == ENV_REPLY_ARRAY && strcmp(client->text, "hello") == 0,
                  "kind %d, value \"%s\"", (int)client->kind, client->text);
}

static bool renewed_three_times(struct fixture *fixture) {
    for (int round = 0; round < 3; round++) { /* started, stopped, started again */
        struct test_client *client = &fixture->clients[0];
        client->watch = (struct watch){.sleep_ms = 10000};
        start_job(fixture, 0, work_for_35_s);
        if (!run(fixture, 1, 0) || !took_exactly(fixture, 0, 35000)) return false;
        if (!expect(fixture, client->started && client->watch.wakes == 3 && client->watch.saw_stopping,
                    "round %d: started %d, %d wake-ups, stopping seen %d", round, client->started, client->watch.wakes,
                    client->watch.saw_stopping))
            return false;
    }
    return true;
}

static bool watchdog_ends_by_itself(struct fixture *fixture) {
    struct test_client *client = &fixture->clients[0];
    client->watch = (struct watch){.sleep_ms = 10000, .sleeps_max = 2};
    start_job(fixture, 0, outlive_the_watchdog);
    return run(fixture, 1, 0) && took_exactly(fixture, 0, 70000) &&
           expect(fixture, client->restarted && client->watch.wakes == 4, "restarted %d, %d wake-ups",
                  client->restarted, client->watch.wakes);
}

/* A watchdog that is held and asked to stop stays held until the driver lets it go on. */
static bool held_watchdog_stays(struct fixture *fixture, job *work, int64_t sleep_ms) {
    struct test_client *client = &fixture->clients[0];
    client->watch = (struct watch){.sleep_ms = sleep_ms, .at_checkpoint = true};
    scheduler_arm(fixture->scheduler, client->task + 1, "renewing", 1);
    start_job(fixture, 0, work);
    for (int round = 0; round < 100 && watchdog_state(fixture, 0) != TASK_HELD; round++)
        if (!run(fixture, 1, 2 * sleep_ms)) return false;
    if (!run(fixture, 1, 20 * sleep_ms)) return false;
    enum task_state state = watchdog_state(fixture, 0);
    if (!expect(fixture, state == TASK_HELD, "the held watchdog is in state %d", (int)state)) return false;
    scheduler_continue(fixture->scheduler, client->task + 1);
    return run(fixture, 1, 0) &&
           expect(fixture, client->watch.wakes == 1 && client->watch.saw_stopping, "%d wake-ups, stopping seen %d",
                  client->watch.wakes, client->watch.saw_stopping);
}

static bool held_in_virtual_time(struct fixture *fixture) {
    return held_watchdog_stays(fixture, work_for_35_s, 10000);
}

/* When the connection is lost while an answer is awaited, the answer is unknown and the next command has a new
 * connection. One that is lost while no command is under way is made anew unnoticed. The scheduler's own connection to
 * the server is lost each time, too. */
static bool connection_lost(struct fixture *fixture) {
    struct test_client *client = &fixture->clients[0];
    if (!nobody_pushes(fixture)) return false;
    start_job(fixture, 0, pop_and_ping);
    start_job(fixture, 1, cut_other_connections);
    if (!run(fixture, 2, 0) || !took_exactly(fixture, 0, 50)) return false;
    if (!expect(fixture, client->kind == ENV_REPLY_UNKNOWN && client->next_kind == ENV_REPLY_STATUS, "kinds %d and %d",
                (int)client->kind, (int)client->next_kind))
        return false;
    start_job(fixture, 1, cut_other_connections);
    if (!run(fixture, 2, 0)) return false;
    start_job(fixture, 0, ping);
    return run(fixture, 1, 0) && expect(fixture, client->kind == ENV_REPLY_STATUS, "kind %d", (int)client->kind) &&
           nobody_pushes(fixture);
}

static bool heard(struct fixture *fixture, const char *expected) {
    return expect(fixture, strcmp(fixture->clients[0].text, expected) == 0, "heard \"%s\" instead of \"%s\"",
                  fixture->clients[0].text, expected);
}

static bool told_at_once(struct fixture *fixture) {
    for (int round = 0; round < 20; round++) {
        memset(fixture->clients[0].text, 0, sizeof fixture->clients[0].text);
        start_job(fixture, 0, hear_one);
        start_job(fixture, 1, tell_one);
        if (!run(fixture, 2, 0) || !took_exactly(fixture, 0, 5000) || !heard(fixture, "a")) return false;
    }
    return true;
}

static bool told_meanwhile(struct fixture *fixture) {
    start_job(fixture, 0, hear_late);
    start_job(fixture, 1, tell_many);
    return run(fixture, 2, 0) && heard(fixture, "abcd--e") && took_exactly(fixture, 0, 20000);
}

static bool subscription_lost(struct fixture *fixture) {
    start_job(fixture, 0, hear_after_loss);
    start_job(fixture, 1, cut_and_tell);
    return run(fixture, 2, 0) && heard(fixture, "--a") && took_exactly(fixture, 0, 10000);
}

/* --- cases in real time --- */

/* A watchdog that sleeps for an hour, longer than a run may last, is woken by the request to stop. */
static bool stops_at_once(struct fixture *fixture) {
    struct test_client *client = &fixture->clients[0];
    for (int round = 0; round < 3; round++) {
        client->watch = (struct watch){.sleep_ms = LONG_SLEEP_MS};
        start_job(fixture, 0, work_for_50_ms);
        if (!run(fixture, 1, 0)) return false;
        if (!expect(fixture, client->started && client->watch.wakes == 0 && client->watch.saw_stopping,
                    "round %d: started %d, %d wake-ups, stopping seen %d", round, client->started, client->watch.wakes,
                    client->watch.saw_stopping))
            return false;
    }
    return true;
}

static bool renews_in_real_time(struct fixture *fixture) {
    struct test_client *client = &fixture->clients[0];
    client->watch = (struct watch){.sleep_ms = 10};
    start_job(fixture, 0, work_until_it_renewed);
    if (!run(fixture, 1, 0)) return false;
    int64_t most = took_ns(fixture, 0) / (10 * MS_NS);
    return expect(fixture, client->watch.wakes >= 1 && client->watch.wakes <= most, "%d wake-ups, at most %" PRId64,
                  client->watch.wakes, most);
}

static bool held_in_real_time(struct fixture *fixture) {
    return held_watchdog_stays(fixture, work_until_it_renewed, 10) && stops_at_once(fixture);
}

/* A step begins when the trial is run, so a checkpoint that is armed after it was given is not missed. */
static bool step_waits_for_run(struct fixture *fixture) {
    struct test_client *client = &fixture->clients[0];
    start_job(fixture, 0, stand_at_checkpoint);
    usleep(20000);
    scheduler_arm(fixture->scheduler, client->task, "standing", 1);
    if (!run(fixture, 1, 0)) return false;
    enum task_state state = scheduler_state(fixture->scheduler, client->task);
    if (!expect(fixture, state == TASK_HELD, "state %d instead of held", (int)state)) return false;
    scheduler_continue(fixture->scheduler, client->task);
    return run(fixture, 1, 0);
}

static bool told_in_real_time(struct fixture *fixture) {
    start_job(fixture, 0, hear_nothing_for_50_ms);
    if (!run(fixture, 1, 0) || !heard(fixture, "-")) return false;
    int64_t took_ms = took_ns(fixture, 0) / MS_NS;
    if (!expect(fixture, took_ms >= 50, "gave up after %" PRId64 " ms", took_ms)) return false;
    start_job(fixture, 0, hear_one);
    start_job(fixture, 1, tell_after_50_ms);
    return run(fixture, 2, 0) && heard(fixture, "-a");
}

/* --- all of it --- */

struct test_case {
    const char *name;
    bool (*play)(struct fixture *fixture);
    enum history_time time;
};

static const struct test_case CASES[] = {
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

/* A fixture whose case failed is not closed: its threads may hang. */
static bool play(const struct test_case *test_case, const char *socket, const char *clock, const char *page) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture) abort();
    fixture->socket = socket;
    int64_t began_ns = clock_real_mono_ns();
    bool good = enter(fixture, page, clock, test_case->time) && test_case->play(fixture);
    if (good) leave(fixture);
    good = !fixture->why[0];
    printf("\"%s\": {\"ok\": %s, \"real_ms\": %" PRId64 ", \"why\": \"%s\"}, ", test_case->name,
           good ? "true" : "false", (clock_real_mono_ns() - began_ns) / MS_NS, fixture->why);
    if (good) free(fixture);
    return good;
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: blocking_call SOCKET CLOCK PAGE\n"), 2;
    bool good = true;
    printf("{");
    for (size_t each = 0; each < sizeof CASES / sizeof CASES[0]; each++)
        good &= play(&CASES[each], argv[1], argv[2], argv[3]);
    printf("\"ok\": %s}\n", good ? "true" : "false");
    fflush(stdout);
    if (!good) _exit(1); /* the threads of a case that failed may still wait */
    return 0;
}
