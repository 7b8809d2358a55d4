/* make_operations PATH OPERATIONS UNKNOWN_PERCENT VIOLATIONS [plain|mixed|strays]: the operations of ten clients on a
 * lock, as EDN.
 *
 * The lock is correct: a holder has it until the release; tokens rise. Acquires of other clients are in flight
 * meanwhile. UNKNOWN_PERCENT of the operations have an unknown outcome. Plain: such acquires were not granted, such
 * releases did happen, so no unknown operation can explain a violation. Mixed: half of the unknown acquires were
 * granted, and the client releases, which is answered. Strays: besides, one unknown release in three did not happen,
 * and the client releases again; the first one may then happen at any later time. VIOLATIONS times, the first in the
 * middle of the history, a client is granted the lock while another holds it.
 *
 * Exit status: 0; 2 bad usage or no room. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/random.h"

enum { CLIENTS = 10, NOBODY = -1 };

enum place { IDLE, ACQUIRES, HOLDS, RELEASES, RELEASES_AGAIN, RELEASES_IN_DOUBT };

struct lock {
    FILE *out;
    struct random random;
    enum place clients[CLIENTS];
    int holder;
    bool granted_in_doubt; /* the outcome of the holder's acquire is unknown */
    long long token, events, calls, wanted;
    unsigned unknown_percent, violations;
    bool mixed, strays;
};

static void line(struct lock *lock, int client, const char *type, const char *f, long long value) {
    fprintf(lock->out, "{:index %lld, :type :%s, :process %d, :f :%s, :value ", lock->events++, type, client, f);
    if (value) fprintf(lock->out, "%lld, ", value);
    else fprintf(lock->out, "nil, ");
    fprintf(lock->out, ":time %lld}\n", lock->events * 1000);
}

static bool in_doubt(struct lock *lock) {
    return random_below(&lock->random, 100) < lock->unknown_percent;
}

static void call(struct lock *lock, int client, const char *f, enum place place) {
    line(lock, client, "invoke", f, 0);
    lock->calls++;
    lock->clients[client] = place;
}

static void acquire_returns(struct lock *lock, int client) {
    bool violate = lock->violations && lock->calls >= lock->wanted / 10 * 9 && lock->holder != NOBODY &&
                   lock->clients[lock->holder] == HOLDS && !lock->granted_in_doubt;
    if (violate) lock->violations--;
    else if (lock->holder != NOBODY) return;
    if (!violate && in_doubt(lock)) {
        line(lock, client, "info", "acquire", 0);
        lock->granted_in_doubt = lock->mixed && random_below(&lock->random, 2);
        lock->clients[client] = lock->granted_in_doubt ? HOLDS : IDLE;
        if (!lock->granted_in_doubt) return;
        lock->holder = client;
        lock->token++;
        return;
    }
    line(lock, client, "ok", "acquire", ++lock->token);
    lock->clients[client] = HOLDS;
    if (violate) return;
    lock->granted_in_doubt = false;
    lock->holder = client;
}

static void release_returns(struct lock *lock, int client) {
    bool answered =
        lock->holder == client && lock->granted_in_doubt; /* else neither grant nor release may have happened */
    if (lock->clients[client] == RELEASES && !answered && in_doubt(lock)) {
        line(lock, client, "info", "release", 0);
        bool again = lock->strays && random_below(&lock->random, 3) == 0;
        lock->clients[client] = again ? RELEASES_AGAIN : IDLE;
        if (again) return;
    } else {
        line(lock, client, "ok", "release", 0);
        lock->clients[client] = IDLE;
    }
    if (lock->holder == client) lock->holder = NOBODY;
}

static void step(struct lock *lock) {
    int client = (int)random_below(&lock->random, CLIENTS);
    switch (lock->clients[client]) {
    case IDLE: call(lock, client, "acquire", ACQUIRES); break;
    case ACQUIRES: acquire_returns(lock, client); break;
    case HOLDS: call(lock, client, "release", RELEASES); break;
    case RELEASES_AGAIN: call(lock, client, "release", RELEASES_IN_DOUBT); break;
    default: release_returns(lock, client); break;
    }
}

int main(int argc, char **argv) {
    struct lock lock = {.random = {.state = 1}, .holder = NOBODY};
    if (argc < 5 || argc > 6)
        return fprintf(stderr,
                       "usage: make_operations PATH OPERATIONS UNKNOWN_PERCENT VIOLATIONS [plain|mixed|strays]\n"),
               2;
    lock.wanted = strtoll(argv[2], NULL, 10);
    lock.unknown_percent = (unsigned)strtoul(argv[3], NULL, 10);
    lock.violations = (unsigned)strtoul(argv[4], NULL, 10);
    lock.strays = argc == 6 && strcmp(argv[5], "strays") == 0;
    lock.mixed = lock.strays || (argc == 6 && strcmp(argv[5], "mixed") == 0);
    lock.out = fopen(argv[1], "we");
    if (!lock.out) return fprintf(stderr, "make_operations: %s: %s\n", argv[1], strerror(errno)), 2;
    while (lock.calls < lock.wanted) step(&lock);
    bool written = fflush(lock.out) == 0;
    return fclose(lock.out) == 0 && written ? 0 : 2;
}
