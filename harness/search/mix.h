#pragma once

#include <stdint.h>

/* Adds a 64-bit word to a digest (after wyhash, Wang Yi 2019). */
static inline uint64_t mix(uint64_t digest, uint64_t word) {
    __uint128_t product = (__uint128_t)(digest ^ word) * 0xa0761d6478bd642fu;
    return (uint64_t)product ^ (uint64_t)(product >> 64) ^ 0xe7037ed1a0b428dbu;
}

/* Adds a checkpoint (NULL: none) by its name: the processes of one search number checkpoints in different orders. */
static inline uint64_t mix_name(uint64_t digest, const char *name) {
    for (; name && *name; name++) digest = mix(digest, (unsigned char)*name);
    return digest;
}
