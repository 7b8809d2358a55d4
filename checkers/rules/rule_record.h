/* What the rules of applications read: the requests of one schedule, and what each did to locks and data, in the order
 * in which the servers did it. Decision 0149; docs/application-rules.md has each rule's definition. */
#pragma once

#include <stddef.h>

#include "harness/recogniser/wire_event.h"

enum { RULE_REQUEST_NAME = 64, NO_REQUEST = -1 };

/* A request to an instance, which counts from 0. */
struct rule_request {
    char name[RULE_REQUEST_NAME];
    int instance;
    size_t asked_at, answered_at; /* the number of events before it was asked, and before its answer; SIZE_MAX: it was
                                     not answered */
};

/* An event of a session, and the request that brought it about. */
struct rule_event {
    struct wire_event wire; /* its texts are the record's */
    int request;            /* its place among the requests; NO_REQUEST: it belongs to none, or nobody knows to
                               which */
    int instance;
};

/* Zeroed: empty. */
struct rule_record {
    struct rule_event *events; /* owned */
    size_t count, room;
    struct rule_request *requests; /* owned */
    int request_count;
    size_t request_room;
    struct text_block *texts; /* owned */
    bool is_struck;           /* a fault has struck, so what is left may be left because of it */
};

void rule_record_event(struct rule_record *record, const struct wire_event *event, int request, int instance);
/* Returns its place. */
int rule_record_request(struct rule_record *record, const char *name, int instance);
void rule_record_answer(struct rule_record *record, int request);
/* Its memory is kept for the next one. */
void rule_record_clear(struct rule_record *record);
void rule_record_free(struct rule_record *record);
