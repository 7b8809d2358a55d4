/* SHA-1 (FIPS 180-4), by which Redis names scripts. */
#pragma once

#include "faults/proxy/resp.h"

enum { SHA1_HEX = 41 };

/* In hexadecimal, with a 0 behind it. */
void sha1_hex(struct span text, char hex[static SHA1_HEX]);
