/* crash-server for PostgreSQL: killed with all its children, and started again with what it had committed. */
#pragma once

#include "faults/common/fault.h"

bool postgres_crash_inject(struct fault_target *target, struct fault_report *report);
bool postgres_crash_heal(struct fault_target *target, struct fault_report *report);
bool postgres_crash_prove(struct fault_target *target, struct fault_report *report);
