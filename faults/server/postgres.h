/* What faults do to a PostgreSQL server: a postmaster with child processes, queried in SQL through the driver. */
#pragma once

#include "faults/common/fault.h"

bool is_postgres(const struct fault_target *target);

/* Runs a statement whose result is a number. */
bool postgres_query(const struct fault_target *target, const char *statement, int64_t *number,
                    struct fault_report *report);

/* Whether the server sends anything on a new connection within limit_ms of real time. */
bool postgres_answers(const struct fault_target *target, int limit_ms);

/* As process_stop, process_continue and process_prove_stopped, for the postmaster with all its children. */
bool postgres_stop(const struct fault_target *target, bool *sent, struct fault_report *report);
bool postgres_continue(const struct fault_target *target, bool *sent, struct fault_report *report);
bool postgres_prove_stopped(const struct fault_target *target, struct fault_report *report);

/* Kills a postmaster and all its children; returns when the last has ended. */
bool postgres_end(int pid, struct fault_report *report);

/* crash-server: killed with all its children, and started again with what it had committed. */
bool postgres_crash_inject(struct fault_target *target, struct fault_report *report);
bool postgres_crash_heal(struct fault_target *target, struct fault_report *report);
bool postgres_crash_prove(struct fault_target *target, struct fault_report *report);
