/* A workload: what all clients of a schedule ask their library for, a list of calls for each thread of each client. Of
 * a C lock it says only how many clients there are: each makes its turns.
 *
 * As text, a line for each call, in the order in which a thread makes them:
 *
 *   client-1 thread-1: acquire lock-1 resource-1 exclusive wait=none lease=given:3000 form=Lock.acquire(blocking=False)
 *   client-1 thread-1: work 500
 *   client-1 thread-1: release lock-1 resource-1 exclusive
 *
 * A release or renewal may have "over" (its context has ended before it is asked) or "cancel-at=N" (it is cancelled
 * when N messages of its client have gone on), an acquire "over". A release that ends with "again" is asked only if the
 * one before it has failed.
 *
 * "settings capacity=1" says what all programs are opened with. A request to an instance of an application has its
 * name:
 *
 *   client-1 thread-1: request consume
 *
 * A thread makes its next call when the one before is answered. What stands between an acquire that was not granted and
 * its release is left out, with both. */
#pragma once

#include "checkers/promises/promises.h"
#include "harness/search/choice.h"

enum { WORKLOAD_CLIENTS = 4, WORKLOAD_THREADS = THREADS_PER_CLIENT, WORKLOAD_CALLS = 12 };
enum { WORKLOAD_THREADS_ALL = WORKLOAD_CLIENTS * WORKLOAD_THREADS };
enum { WORKLOAD_FORM = 96, WORKLOAD_LINE = 320, WORKLOAD_SETTINGS = 160 };

struct planned_call {
    struct call call;        /* client and thread are where it stands; `form` belongs to the offer or to the workload */
    int64_t work_ms;         /* CALL_WORK */
    int64_t cancel_after_ms; /* of an acquire: it is cancelled when it is not answered for so long; 0: never */
    int cancel_at;           /* of a release or renewal: it is cancelled when so many messages of its client, less one,
                              * have gone on since it was asked; 0: never */
    int match;               /* of an acquire: the place of its release among the thread's calls; or -1 */
    char form[WORKLOAD_FORM];
};

struct workload_thread {
    struct planned_call calls[WORKLOAD_CALLS];
    int count;
};

struct workload {
    struct workload_thread threads[WORKLOAD_THREADS_ALL]; /* by workload_thread_number */
    int clients;
    char settings[WORKLOAD_SETTINGS]; /* of all programs: "capacity=1 retries=0"; empty: the library's own */
};

static inline int workload_thread_number(int client, int thread) {
    return client * WORKLOAD_THREADS + thread;
}

/* Copies the calls that there are. */
void workload_copy(struct workload *to, const struct workload *from);
/* Fills in `match` of every acquire: a release of the same lock and mode, at the same depth. */
void workload_match(struct workload *workload);
/* Number of calls. */
int workload_calls(const struct workload *workload);
/* Adds a call to those of a thread. NULL: it has WORKLOAD_CALLS of them. */
struct planned_call *workload_call_add(struct workload *workload, int client, int thread, enum call_verb verb);

/* Writes a call as a line without its end. Returns the buffer. */
const char *workload_line_write(const struct planned_call *call, char line[WORKLOAD_LINE]);
/* Adds the call or the settings of a line. False: *reason says what is wrong with it. */
bool workload_line_read(struct workload *workload, const char *line, const char **reason);

/* The words of a mode, a wait, a lease, a call and its outcome in the protocol and in schedule files; NULL-terminated
 * lists by the enum. */
extern const char *const CALL_MODES[];
extern const char *const CALL_WAITS[];
extern const char *const CALL_LEASES[];
extern const char *const CALL_VERBS[];
extern const char *const CALL_OUTCOMES[];
/* The place of a word in such a list; -1: it is not there. */
int call_word_find(const char *const *words, const char *word);
