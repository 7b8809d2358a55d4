#include "harness/recogniser/text/sha1.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 80 };

static uint32_t rotated(uint32_t word, int by) {
    return word << by | word >> (32 - by);
}

static void sha1_block(uint32_t state[5], const unsigned char *bytes) {
    uint32_t words[ROUNDS], now[5];
    for (int each = 0; each < 16; each++)
        words[each] = (uint32_t)bytes[4 * each] << 24 | (uint32_t)bytes[4 * each + 1] << 16 |
                      (uint32_t)bytes[4 * each + 2] << 8 | bytes[4 * each + 3];
    for (int each = 16; each < ROUNDS; each++)
        words[each] = rotated(words[each - 3] ^ words[each - 8] ^ words[each - 14] ^ words[each - 16], 1);
    memcpy(now, state, sizeof now);
    for (int each = 0; each < ROUNDS; each++) {
        uint32_t mixed = now[1] ^ now[2] ^ now[3], constant = each < 40 ? 0x6ed9eba1 : 0xca62c1d6;
        if (each < 20) {
            mixed = (now[1] & now[2]) | (~now[1] & now[3]);
            constant = 0x5a827999;
        } else if (each >= 40 && each < 60) {
            mixed = (now[1] & now[2]) | (now[1] & now[3]) | (now[2] & now[3]);
            constant = 0x8f1bbcdc;
        }
        uint32_t next = rotated(now[0], 5) + mixed + now[4] + constant + words[each];
        memmove(now + 1, now, 4 * sizeof now[0]);
        now[0] = next;
        now[2] = rotated(now[2], 30);
    }
    for (int each = 0; each < 5; each++) state[each] += now[each];
}

void sha1_hex(struct span text, char hex[static SHA1_HEX]) {
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const unsigned char *bytes = (const unsigned char *)text.bytes;
    unsigned char last[2 * BLOCK] = {0};
    size_t at = 0;
    for (; text.length - at >= BLOCK; at += BLOCK) sha1_block(state, bytes + at);
    size_t rest = text.length - at, blocks = rest + 9 > BLOCK ? 2 : 1;
    if (rest > 0) memcpy(last, bytes + at, rest);
    last[rest] = 0x80;
    for (size_t each = 0; each < 8; each++)
        last[blocks * BLOCK - 1 - each] = (unsigned char)((uint64_t)text.length * 8 >> (8 * each));
    for (size_t each = 0; each < blocks; each++) sha1_block(state, last + each * BLOCK);
    for (size_t each = 0; each < 5; each++) snprintf(hex + 8 * each, 9, "%08x", (unsigned)state[each]);
}
