#include "harness/recogniser/text/time_text.h"

#include <ctype.h>
#include <strings.h>

#include "harness/recogniser/text/short_text.h"

enum { MS_PER_S = 1000, S_PER_DAY = 86400 };

struct time_reader {
    const char *at, *end;
};

static void time_blanks_skip(struct time_reader *reader) {
    while (reader->at < reader->end && isspace((unsigned char)*reader->at)) reader->at++;
}

static bool time_mark_skip(struct time_reader *reader, const char *marks) {
    bool here = reader->at < reader->end && *reader->at && strchr(marks, *reader->at);
    if (here) reader->at++;
    return here;
}

/* A number with at most nine digits, and perhaps a fraction, which is cut to thousandths. False: there is no such one.
 */
static bool time_number(struct time_reader *reader, int64_t *whole, int64_t *thousandths) {
    const char *begin = reader->at;
    *whole = *thousandths = 0;
    for (; reader->at < reader->end && isdigit((unsigned char)*reader->at) && reader->at < begin + 9; reader->at++)
        *whole = *whole * 10 + (*reader->at - '0');
    if (reader->at == begin) return false;
    if (reader->at == reader->end || *reader->at != '.') return true;
    reader->at++;
    for (int64_t worth = 100; reader->at < reader->end && isdigit((unsigned char)*reader->at); worth /= 10)
        *thousandths += (*reader->at++ - '0') * worth;
    return true;
}

/* HH:MM:SS.sss behind the hours. */
static bool clock_rest(struct time_reader *reader, int64_t hours, int64_t *ms) {
    int64_t minutes, seconds = 0, thousandths = 0;
    if (!time_number(reader, &minutes, &thousandths)) return false;
    if (time_mark_skip(reader, ":") && !time_number(reader, &seconds, &thousandths)) return false;
    *ms += ((hours * 60 + minutes) * 60 + seconds) * MS_PER_S + thousandths;
    return true;
}

/* What a unit is worth in microseconds; 0: it is not a unit of a fixed length. */
static int64_t unit_us(struct time_reader *reader) {
    static const struct {
        const char *name;
        int64_t us;
    } UNITS[] = {{"microsecond", 1},   {"us", 1},         {"millisecond", 1000}, {"ms", 1000},      {"second", 1000000},
                 {"sec", 1000000},     {"s", 1000000},    {"minute", 60000000},  {"min", 60000000}, {"m", 60000000},
                 {"hour", 3600000000}, {"h", 3600000000}, {"day", 86400000000}};
    const char *begin = reader->at;
    while (reader->at < reader->end && isalpha((unsigned char)*reader->at)) reader->at++;
    size_t length = (size_t)(reader->at - begin);
    for (size_t each = 0; each < sizeof UNITS / sizeof UNITS[0]; each++) {
        size_t name = strlen(UNITS[each].name);
        bool is_plural = length == name + 1 && (begin[name] == 's' || begin[name] == 'S') && name > 1;
        if ((length == name || is_plural) && strncasecmp(begin, UNITS[each].name, name) == 0) return UNITS[each].us;
    }
    return 0;
}

int64_t interval_text_ms(struct span text) {
    struct time_reader reader = {text.bytes, text.bytes + text.length};
    int64_t ms = 0, whole, thousandths;
    bool found = false;
    for (time_blanks_skip(&reader); reader.at < reader.end; time_blanks_skip(&reader)) {
        if (!time_number(&reader, &whole, &thousandths)) return -1;
        if (time_mark_skip(&reader, ":")) {
            if (!clock_rest(&reader, whole, &ms)) return -1;
        } else {
            time_blanks_skip(&reader);
            int64_t us = unit_us(&reader);
            if (us == 0) return -1;
            ms += whole * us / 1000 + thousandths * us / 1000000;
        }
        if (ms > INT64_MAX / 1000000000) return -1;
        found = true;
    }
    return found ? ms : -1;
}

/* Days from 1970-01-01 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"). */
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = year / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Milliseconds from 1970 in the zone that the text has; *zone: its text. -1: it is no such timestamp. */
static int64_t timestamp_ms(struct span text, struct span *zone) {
    struct time_reader reader = {text.bytes, text.bytes + text.length};
    int64_t parts[4], thousandths, ms = 0;
    for (int each = 0; each < 4; each++) {
        static const char *const BEHIND[] = {"-", "-", " T", ":"};
        if (!time_number(&reader, &parts[each], &thousandths) || !time_mark_skip(&reader, BEHIND[each])) return -1;
    }
    if (parts[0] > 9999 || parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[2] > 31) return -1;
    if (!clock_rest(&reader, parts[3], &ms)) return -1;
    *zone = (struct span){reader.at, (size_t)(reader.end - reader.at)};
    return days_of(parts[0], parts[1], parts[2]) * S_PER_DAY * MS_PER_S + ms;
}

int64_t timestamp_texts_apart_ms(struct span from, struct span to) {
    struct span from_zone, to_zone;
    int64_t from_ms = timestamp_ms(from, &from_zone), to_ms = timestamp_ms(to, &to_zone);
    bool comparable = from_ms >= 0 && to_ms >= from_ms && spans_equal(from_zone, to_zone);
    return comparable ? to_ms - from_ms : -1;
}
