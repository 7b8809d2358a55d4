#include "harness/environment/live_env.h"

#include <stdlib.h>

bool live_watchdog_stopping(const struct env *env) {
    return atomic_load_explicit(&live_env_of_const(env)->stopping, memory_order_acquire);
}

static void watchdog_run(void *argument) {
    struct live_env *live = argument;
    task_begin(&live->task.task);
    live->run(&live->env, live->argument);
    live_env_drop_reply(live);
    live_env_close_sessions(live);
    task_end(&live->task.task, &live->worker->task.task);
}

static void *live_watchdog_main(void *argument) {
    watchdog_run(argument);
    return NULL;
}

static bool watchdog_begin(struct live_env *worker, struct live_env *live) {
    const struct task *task = &live->task.task;
    if (task->carrier) return task->carrier->start(task->carrier, task->place, watchdog_run, live);
    return pthread_create(&worker->thread, NULL, live_watchdog_main, live) == 0;
}

static void watchdog_join(const struct live_env *worker, const struct live_env *live) {
    const struct task *task = &live->task.task;
    if (task->carrier) task->carrier->join(task->carrier, worker->task.task.place, task->place);
    else pthread_join(worker->thread, NULL);
}

void live_watchdog_stop(struct env *env) {
    struct live_env *worker = live_env_of(env), *live = worker->watchdog;
    if (!live) return;
    atomic_store_explicit(&live->stopping, true, memory_order_release);
    task_await_end(&worker->task.task, &live->task.task);
    watchdog_join(worker, live);
    free(live);
    worker->watchdog = NULL;
}

bool live_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument) {
    struct live_env *worker = live_env_of(env);
    const struct env_live_options *options = &worker->options;
    if (worker->watchdog && task_has_ended(&worker->watchdog->task.task)) live_watchdog_stop(env);
    if (worker->watchdog || worker->worker || !options->watchdog.place) return false;
    struct random random = random_split(options->worker.page->seed, options->stream * 2 + 2);
    struct live_env *live = live_env_new(env->ops, options, &options->watchdog, random);
    live->run = run;
    live->argument = argument;
    live->worker = worker;
    task_announce(&live->task.task);
    if (!watchdog_begin(worker, live)) {
        atomic_store_explicit(&live->task.task.place->state, TASK_ABSENT, memory_order_release);
        free(live);
        return false;
    }
    worker->watchdog = live;
    return true;
}
