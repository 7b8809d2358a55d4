/* What faults do to a PostgreSQL server: it is a family of processes, and it is asked in SQL, through the driver. */
#ifndef LOCKSTORM_FAULTS_POSTGRES_H
#define LOCKSTORM_FAULTS_POSTGRES_H

#include "faults/fault.h"

bool is_postgres(const struct fault_target *target);

/* The number that a statement comes to. */
bool postgres_ask(const struct fault_target *target, const char *statement, int64_t *number,
                  struct fault_report *report);

/* Whether it says anything to a new connection within so many ms. */
bool postgres_answers(const struct fault_target *target, int limit_ms);

/* As process_stop, process_go_on and process_prove_stopped, for the server with all its children. */
bool postgres_stop(const struct fault_target *target, bool *sent, struct fault_report *report);
bool postgres_go_on(const struct fault_target *target, bool *sent, struct fault_report *report);
bool postgres_prove_stopped(const struct fault_target *target, struct fault_report *report);

/* Kills the server that this process leads, with all its children; returns when the last has ended. */
bool postgres_end(int pid, struct fault_report *report);

#endif
