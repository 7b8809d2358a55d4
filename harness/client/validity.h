/* Until when a client may believe in its grant: the only writer of that, on the shared page (valid_until_ns) and in the
 * history (HISTORY_VALIDITY). Stamps are of the monotonic clock of the client's host (ns); 0: the lock has stated no
 * validity, INT64_MAX: it is valid until the lock says otherwise.
 *
 * Two processes call it. The client does while it runs. The driver does when it suspends the client's host and when the
 * host goes on: the client's process is stopped at that moment, and the record belongs exactly there. Decision 0017. */
#pragma once

#include "harness/scheduler/actor.h"

/* What a record says in `extra` when no lock has announced it: the host's clock was suspended, or goes on. */
enum { VALIDITY_HOST_CLOCK = 1 };

/* The client was granted the lock: shows the grant's validity on the shared page. Before the grant is recorded: the
 * history never states a validity that the page does not. */
void validity_begin(const struct actor *client, int64_t valid_until_ns);

/* The client is about to ask for the release of all that it was granted: the page shows no validity from here on, until
 * the next grant. An announcement that was on its way is still recorded, but changes the page no more. */
void validity_end(const struct actor *client);

/* The stamp as the history has it, by the trial's clock; INT64_MAX stays, and so does what is no stamp (0, and less).
 */
int64_t validity_trial_ns(const struct actor *client, int64_t valid_until_ns);

/* The lock has announced a validity from now on; a stamp that has passed says that the grant is lost. Shows it on the
 * page while there is a grant, and records it. The record of a loss is *refused*, and its value the stamp at which the
 * validity ended, which is never 0: the announced one, or now if the lock announced 0 or less. Callable from a client's
 * worker and its watchdog at the same time. */
void validity_announce(const struct actor *client, uint32_t lock_name, int64_t valid_until_ns);

/* For the driver: the clock of the host of the client with this task (its worker) shows host_ns; it has just been
 * suspended (`stands`), or goes on. Records what that means for a grant that is still valid, as a record of `client`
 * by the trial's clocks. False: no grant is, and nothing is recorded. */
bool validity_record_host_clock(struct history *history, struct shared_page *page, int task, uint32_t client,
                                uint32_t lock_name, int64_t host_ns, bool stands);
