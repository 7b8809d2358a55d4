/* A hash of 64-bit words, one after the other, for tables whose size is a power of two: its low bits depend on all bits
 * of the words. Fibonacci hashing (a product with 2^64 / golden ratio; Knuth, TAOCP 3, 6.4) with the high half folded
 * in. Begin with 0, or with what tells one use from another. */
#pragma once

#include <stdint.h>

static inline uint64_t hash_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}
