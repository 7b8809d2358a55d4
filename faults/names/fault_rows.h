/* The table of faults: one row for each fault, whichever world injects it. The only list of their names.
 *
 * A fault has one name in scenarios, storms, policies, schedules and on the command line. What it is called in files
 * that were written before is in the row, too; such names are read and never written. */
#pragma once

/* Sorted by name. */
enum fault_id {
    FAULT_ID_CLIENT_CLOCK_JUMP,
    FAULT_ID_CLOCK_DRIFT,
    FAULT_ID_CLOCK_JUMP,
    FAULT_ID_CLOSE_LINKS,
    FAULT_ID_CRASH_SERVER,
    FAULT_ID_CRASH_SERVER_EMPTY,
    FAULT_ID_DELAY_MESSAGE,
    FAULT_ID_DELAY_WRITE,
    FAULT_ID_DROP_MESSAGE,
    FAULT_ID_DROP_REQUEST,
    FAULT_ID_DUPLICATE_REQUEST,
    FAULT_ID_ERROR_REPLY,
    FAULT_ID_EVICT,
    FAULT_ID_FAILOVER,
    FAULT_ID_FAILOVER_CLUSTER,
    FAULT_ID_FAILOVER_SENTINEL,
    FAULT_ID_FLUSH,
    FAULT_ID_HOLD_REPLY,
    FAULT_ID_HOLD_REQUEST,
    FAULT_ID_KILL_CLIENT,
    FAULT_ID_KILL_CONNECTIONS,
    FAULT_ID_KILL_SERVER,
    FAULT_ID_KILL_SUBSCRIBER,
    FAULT_ID_LOSE_REPLY,
    FAULT_ID_MAX_CLIENTS,
    FAULT_ID_PARTITION,
    FAULT_ID_PAUSE_CLIENT,
    FAULT_ID_PAUSE_CLIENT_BEFORE_SEND,
    FAULT_ID_PAUSE_COMMANDS,
    FAULT_ID_PAUSE_SERVER,
    FAULT_ID_READ_ONLY,
    FAULT_ID_SCRIPT_FLUSH,
    FAULT_ID_SERVER_DOWN,
    FAULT_ID_SERVER_SILENT,
    FAULT_ID_SLOW_SERVER,
    FAULT_ID_STALL_REPLICA,
    FAULT_ID_STALL_WORKER,
    FAULT_ID_SUSPEND_HOST,
    FAULT_IDS, /* no fault: how many there are */
};

enum fault_world {
    FAULT_IN_TRIAL,      /* real clients and servers: scenarios, storms, the gate */
    FAULT_IN_SIMULATION, /* schedules of C locks */
    FAULT_IN_LIBRARY,    /* schedules of hosted programs: --adapter */
    FAULT_WORLDS,
};

struct fault_row {
    const char *name;
    const char *old_name; /* NULL: it was always called so */
    const char *meaning;  /* one line */
    const char *proof;    /* what shows that it is in effect */
    const char *source;
    const char *is[FAULT_WORLDS];     /* what it is in a world */
    const char *is_not[FAULT_WORLDS]; /* of the other worlds: why it is not there */
};

extern const struct fault_row FAULT_ROWS[FAULT_IDS];

/* The fault with this name, or with this name in files of before. FAULT_IDS: no fault has it. */
enum fault_id fault_id_named(const char *word);
