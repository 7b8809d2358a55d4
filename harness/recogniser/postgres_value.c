#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "harness/recogniser/postgres_talk.h"

/* Oids of pg_type.dat. */
enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_OID = 26,
    OID_NAME = 19,
    OID_JSON = 114,
    OID_UNKNOWN = 705,
    OID_BPCHAR = 1042,
    OID_VARCHAR = 1043,
    OID_UUID = 2950,
};

/* Arrays, and the types of their elements. */
static const uint32_t ARRAYS[][2] = {{1005, OID_INT2}, {1007, OID_INT4},    {1016, OID_INT8},
                                     {1009, OID_TEXT}, {1015, OID_VARCHAR}, {2951, OID_UUID}};
enum { ARRAY_HEAD = 20 }; /* dimensions, nulls, type, length and first index, of four bytes each */

static int64_t big_endian(struct span value) {
    uint64_t number = value.length > 0 && (value.bytes[0] & 0x80) ? UINT64_MAX : 0;
    for (size_t each = 0; each < value.length; each++) number = number << 8 | (unsigned char)value.bytes[each];
    return (int64_t)number;
}

static void hex_add(struct short_text *text, struct span bytes) {
    static const char DIGITS[] = "0123456789abcdef";
    for (size_t each = 0; each < bytes.length && !text->cut; each++) {
        unsigned char byte = (unsigned char)bytes.bytes[each];
        short_text_byte(text, DIGITS[byte >> 4]);
        short_text_byte(text, DIGITS[byte & 15]);
    }
}

static void uuid_add(struct short_text *text, struct span value) {
    static const size_t GROUPS[] = {4, 2, 2, 2, 6};
    for (size_t group = 0, at = 0; group < sizeof GROUPS / sizeof GROUPS[0]; at += GROUPS[group++]) {
        if (group > 0) short_text_say(text, "-");
        hex_add(text, (struct span){value.bytes + at, GROUPS[group]});
    }
}

static void integer_add(struct short_text *text, int64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, number);
    short_text_say(text, digits);
}

static void scalar_add(struct short_text *text, struct span value, uint32_t type, bool is_binary) {
    size_t length = value.length;
    bool is_integer =
        (type == OID_INT2 && length == 2) || (type == OID_INT4 && length == 4) || (type == OID_INT8 && length == 8);
    bool is_text = type == OID_TEXT || type == OID_NAME || type == OID_JSON || type == OID_UNKNOWN ||
                   type == OID_BPCHAR || type == OID_VARCHAR;
    if (!is_binary || is_text) {
        short_text_add(text, value);
    } else if (is_integer) {
        integer_add(text, big_endian(value));
    } else if (type == OID_OID && length == 4) {
        integer_add(text, big_endian(value) & UINT32_MAX);
    } else if (type == OID_BOOL && length == 1) {
        short_text_say(text, value.bytes[0] ? "t" : "f");
    } else if (type == OID_UUID && length == 16) {
        uuid_add(text, value);
    } else {
        short_text_say(text, "\\x");
        hex_add(text, value);
    }
}

/* An array of one dimension, as {1,2,3}. */
static bool array_add(struct short_text *text, struct span value, uint32_t type) {
    if (value.length < ARRAY_HEAD || big_endian((struct span){value.bytes, 4}) != 1) return false;
    short_text_say(text, "{");
    for (size_t at = ARRAY_HEAD; at + 4 <= value.length && !text->cut;) {
        int64_t length = big_endian((struct span){value.bytes + at, 4});
        if (at > ARRAY_HEAD) short_text_say(text, ",");
        at += 4;
        if (length < 0) short_text_say(text, "NULL");
        if (length < 0) continue;
        if ((size_t)length > value.length - at) length = (int64_t)(value.length - at);
        scalar_add(text, (struct span){value.bytes + at, (size_t)length}, type, true);
        at += (size_t)length;
    }
    short_text_say(text, "}");
    return true;
}

void postgres_value_add(struct short_text *text, struct span value, uint32_t type, bool is_binary) {
    for (size_t each = 0; each < sizeof ARRAYS / sizeof ARRAYS[0] && is_binary; each++)
        if (ARRAYS[each][0] == type && array_add(text, value, ARRAYS[each][1])) return;
    scalar_add(text, value, type, is_binary);
}
