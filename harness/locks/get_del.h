/* Releasing by two commands: read the owner, compare in the client, delete. Whatever happens between the two is the
 * pattern's own weakness. */
#ifndef LOCKSTORM_LOCKS_GET_DEL_H
#define LOCKSTORM_LOCKS_GET_DEL_H

#include "harness/locks/lock.h"

/* The lock's state begins with a struct set_nx_px. Checkpoint "between-get-and-del" stands where the race is. OK: a key
 * was deleted - whose, the second command does not ask. */
enum outcome get_del_release(struct lock *lock);

#endif
