/* The faults that are one rule at the proxy, as rows of a table. */
#pragma once

#include "faults/common/fault.h"

/* A fault and its rule. */
struct rule_fault {
    struct fault fault;    /* first: a target's fault points here */
    const char *servers;   /* of a client: the servers whose links it concerns; NULL: the fault's option "servers" */
    const char *direction; /* to-server or to-client */
    const char *action;    /* the rule's; its amount is the option "ms", if the fault has one */
    const char *kind;      /* PUSH or REPLY: the kind of message to the client; NULL: requests */
    const char *counter;   /* of the rule: above 0 when the fault has taken effect */
};

enum rule_fault_row {
    DELAY_MESSAGE,
    DELAY_WRITE,
    DROP_MESSAGE,
    DUPLICATE_REQUEST,
    KILL_SUBSCRIBER,
    LOSE_REPLY,
};

extern const struct rule_fault RULE_FAULTS[];
