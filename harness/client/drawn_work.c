#include "harness/client/drawn_work.h"

enum { BRIEFLY = 50 };

bool drawn_one_in(struct random *random, uint64_t of) {
    return random_below(random, of) == 0;
}

int64_t drawn_ms(struct random *random, int64_t most_ms) {
    return most_ms > 0 ? (int64_t)random_below(random, (uint64_t)most_ms + 1) : 0;
}

int64_t drawn_work_ms(struct random *random, int64_t lease_ms, bool renews) {
    switch (random_below(random, 4)) {
    case 0: return 0;
    case 1: return lease_ms / BRIEFLY;
    default: return drawn_ms(random, renews ? lease_ms * 5 / 2 : lease_ms * 9 / 10);
    }
}

int64_t drawn_patience_ms(struct random *random, int64_t lease_ms, int64_t wait_ms) {
    if (drawn_one_in(random, 2)) return wait_ms;
    switch (random_below(random, 4)) {
    case 0: return 0;
    case 1: return drawn_ms(random, 3 * lease_ms);
    default: return drawn_ms(random, lease_ms);
    }
}
