#include "harness/client/validity.h"

/* What the shared page shows of a grant without a validity: none was stated, or it was lost. 0 means: no grant. */
enum { NO_VALIDITY = -1 };

void validity_begin(const struct actor *client, int64_t valid_until_ns) {
    atomic_store(&client->host->valid_until_ns, valid_until_ns > 0 ? valid_until_ns : NO_VALIDITY);
}

void validity_end(const struct actor *client) {
    atomic_store(&client->host->valid_until_ns, 0);
}

/* In one step with the test that there is a grant, because the worker may be ending it in another thread. */
static void show_while_granted(struct task_slot *host, int64_t valid_until_ns) {
    int64_t shown_ns = atomic_load(&host->valid_until_ns);
    while (shown_ns != 0)
        if (atomic_compare_exchange_weak(&host->valid_until_ns, &shown_ns, valid_until_ns)) return;
}

int64_t validity_trial_ns(const struct actor *client, int64_t valid_until_ns) {
    return valid_until_ns <= 0 ? valid_until_ns : shared_page_trial_ns(client->host, valid_until_ns);
}

static void validity_record(const struct actor *client, uint32_t lock_name, enum outcome outcome, int64_t value,
                            int64_t extra) {
    actor_append(
        client,
        (struct history_record){
            .kind = HISTORY_VALIDITY, .outcome = (uint8_t)outcome, .name = lock_name, .value = value, .extra = extra});
}

/* A lost grant is recorded with the stamp at which it ended, never with 0, which says that none was stated: a lock that
 * names no such stamp has lost it now, and now may be 0. */
static int64_t lost_ns(const struct actor *client, int64_t valid_until_ns, int64_t now_ns) {
    int64_t ended_ns = validity_trial_ns(client, valid_until_ns > 0 ? valid_until_ns : now_ns);
    return ended_ns > 0 ? ended_ns : 1;
}

void validity_announce(const struct actor *client, uint32_t lock_name, int64_t valid_until_ns) {
    int64_t now_ns = shared_page_host_mono_ns(client->page, client->host);
    bool valid = valid_until_ns > now_ns;
    int64_t value = valid ? validity_trial_ns(client, valid_until_ns) : lost_ns(client, valid_until_ns, now_ns);
    show_while_granted(client->host, valid ? valid_until_ns : NO_VALIDITY);
    validity_record(client, lock_name, valid ? OUTCOME_OK : OUTCOME_REFUSED, value, 0);
}

bool validity_record_host_clock(struct history *history, struct shared_page *page, int task, uint32_t client,
                                uint32_t lock_name, int64_t host_ns, bool stands) {
    const struct task_slot *host = &page->tasks[task];
    int64_t valid_until_ns = atomic_load(&host->valid_until_ns);
    if (valid_until_ns <= host_ns) return false;
    int64_t until_ns = stands ? INT64_MAX : shared_page_trial_ns(host, valid_until_ns);
    const struct actor actor = {.history = history, .page = page, .id = client};
    validity_record(&actor, lock_name, OUTCOME_OK, until_ns, VALIDITY_HOST_CLOCK);
    return true;
}
