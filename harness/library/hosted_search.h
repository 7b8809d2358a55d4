/* The world of hosted programs as a world to search (harness/search/search_world.h). Its properties are promises of
 * libraries; its places are the calls that struck clients were making. */
#pragma once

#include "harness/library/library_world.h"
#include "harness/search/search_world.h"

enum { HOSTED_BROKEN = 32 };

/* What a schedule has shown. */
struct hosted_evidence {
    struct broken_promise broken[HOSTED_BROKEN];
    int broken_count;
    struct call_event *events; /* of the last schedule the world's, else owned */
    size_t event_count;
};

struct hosted_search {
    struct search_world search; /* first member */
    struct library_world world;
    struct hosted_evidence last, kept;
};

/* Makes hosted->search of hosted->world, which has these settings and need not be open. */
void hosted_search_make(struct hosted_search *hosted, const struct library_settings *settings);
/* Opens the world. False: hosted->world.reason says why not. */
bool hosted_search_open(struct hosted_search *hosted, const struct library_settings *settings);
void hosted_search_close(struct hosted_search *hosted);
