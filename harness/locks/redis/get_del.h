/* Releasing by two commands: read the owner, compare in the client, delete. That the lock can change between the two is
 * the pattern's weakness. */
#pragma once

#include "harness/locks/common/lock.h"

/* The lock's state begins with a struct set_nx_px. The race is at the checkpoint "between-get-and-del". OK: a key was
 * deleted, its own or another client's. */
enum outcome get_del_release(struct lock *lock);
