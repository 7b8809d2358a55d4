/* Random numbers from a seed: splitmix64 (Steele, Lea, Flood 2014; public domain by Vigna). A generator is passed down
 * and never global, so that the same seed gives the same trial. */
#pragma once

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *random) {
    uint64_t word = (random->state += 0x9e3779b97f4a7c15u);
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

/* A number in [0, bound); 0 for bound 0. The bias is below bound / 2^64. */
static inline uint64_t random_below(struct random *random, uint64_t bound) {
    return (uint64_t)(((__uint128_t)random_next(random) * bound) >> 64);
}

/* An independent generator for part number `part` of a trial. */
static inline struct random random_split(uint64_t seed, uint64_t part) {
    struct random random = {.state = seed ^ (part + 1) * 0xd1342543de82ef95u};
    random_next(&random);
    return random;
}
