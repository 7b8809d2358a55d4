#include "harness/environment/live_task.h"

#include "harness/environment/env_ops.h"

int64_t live_task_mono_ns(const struct live_task *self) {
    return shared_page_host_mono_ns(self->task.page, self->host);
}

int64_t live_task_deadline_ns(const struct live_task *self, int64_t limit_ns) {
    return env_deadline_ns(live_task_mono_ns(self), limit_ns);
}

/* A suspension in the meantime has moved the deadline: for this host no time has passed. */
bool live_task_await_readable(struct live_task *self, int fd, int64_t deadline_ns, bool may_block) {
    for (;;) {
        int64_t suspended_ns = shared_page_suspended_ns(self->host);
        if (task_wait_readable(&self->task, fd, shared_page_trial_ns(self->host, deadline_ns), may_block)) return true;
        if (shared_page_suspended_ns(self->host) == suspended_ns) return false;
    }
}

struct live_wait live_wait_of(struct live_task *self, int64_t limit_ns, bool may_block) {
    return (struct live_wait){self, live_task_deadline_ns(self, limit_ns), may_block};
}

/* A session may send before every wait: one statement takes several messages when its session has to begin first. */
bool live_wait_readable(const struct live_wait *wait, int fd) {
    (wait->may_block ? live_task_count_unawaited : live_task_count_sent)(wait->task);
    return live_task_await_readable(wait->task, fd, wait->deadline_ns, wait->may_block);
}

void live_task_sleep_until(struct live_task *self, int64_t deadline_ns) {
    task_sleep_until(&self->task, shared_page_trial_ns(self->host, deadline_ns));
}

void live_task_count_sent(const struct live_task *self) {
    atomic_fetch_add_explicit(&self->task.page->traffic, 1, memory_order_release);
}

void live_task_count_unawaited(const struct live_task *self) {
    live_task_count_sent(self);
    atomic_fetch_add_explicit(&self->task.page->unawaited, 1, memory_order_release);
}
