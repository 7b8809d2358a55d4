/* Configurations of a lock that has an owner: who holds it, and which operations of unknown outcome were used to get
 * there; and the set of those that explain the events so far. linearizable_owner.c walks through the events, and has
 * the argument for which configurations may be dropped. */
#pragma once

#include "checkers/linearizability/token_order.h"

enum { NOBODY = UINT32_MAX };

/* How many free operations of one process a configuration has used beyond those that every configuration has. */
struct owner_difference {
    uint32_t process;
    uint32_t releases, acquires;
    bool owes; /* a release or renewal was called while the process did not hold: it needs a free acquire */
};

struct owner_configuration {
    uint32_t holder, depth; /* a process, or NOBODY; acquires that it has not released */
    uint32_t since;         /* position at which the hold began */
    uint32_t grant;         /* the operation with which it began: an acquire, or the renewal that shows a free one */
    uint32_t lapses;        /* the first position at which it may have ended by itself; OPERATION_OPEN: none */
    bool dead;              /* it explains no more: to be dropped */
    struct owner_difference *differences;
    size_t difference_count, difference_room;
    struct token_place tokens; /* of a fenced mutex */
};

/* How many free operations of one kind there are, per process: called so far, and used by every configuration. */
struct owner_supply {
    uint32_t *called, *used;
};

/* The walk through the events of one object. */
struct owner_sweep {
    struct timeline *timeline;
    struct limits *limits;
    struct linearizable_result *result;
    enum model model;
    bool leases;   /* a hold may end by itself once its grant was answered, unless the length of its lease is known */
    bool timed;    /* there are leases of known length */
    bool keep_all; /* for tests: no configuration is dropped for another */
    uint32_t processes, position;
    struct owner_supply releases, acquires;
    uint32_t *last_firm;      /* per process: the position after which it has no firm operation */
    struct token_order order; /* of a fenced mutex */
    uint32_t *under_way;      /* firm operations */
    size_t under_way_count, under_way_room;
    struct owner_configuration *list;
    size_t count, room;
};

/* A copy at the end of the list, which may move; NULL past the limit. */
struct owner_configuration *owner_fork(struct owner_sweep *sweep, size_t index);
void owner_configuration_free(struct owner_sweep *sweep, struct owner_configuration *it);

/* What a configuration has used of a process, to be changed. Past the limit it is a dummy, since the search is over. */
struct owner_difference *owner_difference_get(struct owner_sweep *sweep, struct owner_configuration *it,
                                              uint32_t process);
uint32_t owner_releases_used(const struct owner_sweep *sweep, const struct owner_configuration *it, uint32_t process);
uint32_t owner_acquires_used(const struct owner_sweep *sweep, const struct owner_configuration *it, uint32_t process);
bool owner_owes(const struct owner_configuration *it, uint32_t process);
bool owner_owes_any(const struct owner_configuration *it);

/* Did the hold begin with a free acquire? Of a fenced mutex, its token is not known. */
bool owner_is_free_hold(const struct owner_sweep *sweep, const struct owner_configuration *it);
/* May the hold have ended by itself? */
bool owner_may_lapse(const struct owner_sweep *sweep, const struct owner_configuration *it);
/* ... or are there enough free releases to end it? Ends it, by itself if it may. */
bool owner_can_let_go(const struct owner_sweep *sweep, const struct owner_configuration *it);
void owner_let_go(struct owner_sweep *sweep, struct owner_configuration *it);
/* The hold is over: a later grant needs a larger token than any that it had. */
void owner_hold_end(struct owner_sweep *sweep, struct owner_configuration *it);

/* Was an operation that is under way, of another process, called after one position and before another? */
bool owner_called_between(const struct owner_sweep *sweep, uint32_t process, uint32_t after, uint32_t before);

/* Drops the configurations that are dead or that another one makes needless. */
void owner_prune(struct owner_sweep *sweep);
