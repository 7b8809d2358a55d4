#include "harness/client/validity.h"

void validity_publish(const struct actor *client, int64_t valid_until_ns) {
    atomic_store(&client->host->valid_until_ns, valid_until_ns);
}

int64_t validity_trial_ns(const struct actor *client, int64_t valid_until_ns) {
    return valid_until_ns == 0 ? 0 : shared_page_trial_ns(client->host, valid_until_ns);
}

static void record(const struct actor *client, uint32_t lock_name, enum outcome outcome, int64_t value, int64_t extra) {
    actor_append(
        client,
        (struct history_record){
            .kind = HISTORY_VALIDITY, .outcome = (uint8_t)outcome, .name = lock_name, .value = value, .extra = extra});
}

void validity_announce(const struct actor *client, uint32_t lock_name, int64_t valid_until_ns) {
    bool valid = valid_until_ns > shared_page_host_mono_ns(client->page, client->host);
    validity_publish(client, valid ? valid_until_ns : 0);
    record(client, lock_name, valid ? OUTCOME_OK : OUTCOME_REFUSED, validity_trial_ns(client, valid_until_ns), 0);
}

bool validity_record_host_clock(struct history *history, struct shared_page *page, int task, uint32_t client,
                                uint32_t lock_name, int64_t host_ns, bool stands) {
    const struct task_slot *host = &page->tasks[task];
    int64_t valid_until_ns = atomic_load(&host->valid_until_ns);
    if (valid_until_ns <= host_ns) return false;
    int64_t until_ns = stands ? INT64_MAX : shared_page_trial_ns(host, valid_until_ns);
    const struct actor actor = {.history = history, .page = page, .id = client};
    record(&actor, lock_name, OUTCOME_OK, until_ns, VALIDITY_HOST_CLOCK);
    return true;
}
