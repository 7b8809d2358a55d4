/* What a library can be asked for, as its adapter says in `hello` (docs/adapters.md, versions 2 and 3). */
#pragma once

#include <jansson.h>

#include "harness/search/workload.h"

enum { OFFER_FORMS = 32, OFFER_NAME = WORKLOAD_FORM, OFFER_KEEPS = 8, OFFER_REASON = 160 };

enum { OFFER_SETTINGS = 6, OFFER_VALUES = 6, OFFER_WORD = 24 };

/* What programs can be opened with. */
struct library_setting {
    char name[OFFER_WORD], values[OFFER_VALUES][OFFER_WORD];
    int count; /* of values, the library's own first */
};

enum library_topology { TOPOLOGY_SINGLE, TOPOLOGY_SENTINEL, TOPOLOGY_CLUSTER };

/* One way to ask for the lock: an overload, or a set of options. */
struct library_form {
    char name[OFFER_NAME];
    unsigned waits;  /* bit n: enum call_wait n */
    unsigned leases; /* bit n: enum call_lease n */
    int64_t lease_unit_ms, wait_unit_ms;
    bool renews, answers_is_held; /* what may be asked of a hold that it granted */
};

struct library_offer {
    struct library_facts facts;
    char name[OFFER_NAME], version[OFFER_NAME];
    char lease_key[OFFER_NAME]; /* with {resource}; or empty */
    unsigned modes;             /* bit n: enum call_mode n */
    int threads;
    char keeps[OFFER_KEEPS][OFFER_NAME]; /* templates of keys that a right library leaves; '*' at the end: any rest */
    int keep_count;
    enum library_topology topology;
    bool is_tcp, cancels, renews, renews_for, answers_is_held;
    int protocol; /* 2 or 3; what follows is of version 3 */
    unsigned
        cancels_of; /* bit n: a call under way of enum call_verb n can be cancelled; CALL_ACQUIRE is in `cancels` */
    bool holds_two; /* a thread may hold the locks of two resources at once */
    struct library_setting settings[OFFER_SETTINGS];
    int setting_count;
    unsigned asks_over; /* bit n: a call of enum call_verb n can be made with a context that has ended */
    /* What the first acquire of a lock object says holds for all of them: */
    bool lease_of_object, form_of_object, wait_of_object;
    struct library_form forms[OFFER_FORMS];
    int form_count;
};

/* Reads the answer to `hello`. False: *reason, of OFFER_REASON bytes, says what is wrong with it. */
bool offer_read(const json_t *hello, int64_t lease_ms, int permits, struct library_offer *offer, char *reason);

/* Keeps the forms of these names only, in the offer's order. False: *reason says which of them the library has not. */
bool offer_restrict(struct library_offer *offer, const char *const *names, int count, char *reason);

extern const char *const LIBRARY_TOPOLOGIES[]; /* words by enum library_topology */
