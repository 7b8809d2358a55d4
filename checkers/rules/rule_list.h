/* The rules, one a file. Each adds what breaks it to the findings of the pass. */
#pragma once

#include "checkers/rules/rule_holds.h"

typedef void rule_look(struct rule_pass *pass);

rule_look look_unlock_before_commit, look_snapshot_before_lock, look_read_before_lock, look_unprotected_write,
    look_row_lock_outside_transaction, look_beyond_the_lease, look_refused_and_goes_on, look_released_by_a_stranger,
    look_lock_left, look_lock_order, look_done_twice;
