/* Texts of timestamps and intervals, as far as leases are written with them ("Date/Time Types" of PostgreSQL's
 * documentation). */
#pragma once

#include "faults/proxy/resp.h"

/* "30 s", "00:00:30.5"; -1: it is not such a text. */
int64_t interval_text_ms(struct span text);
/* From one timestamp to a later one of the same zone; -1: they are not such texts. */
int64_t timestamp_texts_apart_ms(struct span from, struct span to);
