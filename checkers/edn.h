/* Jepsen histories as EDN: a vector or list of maps, or one map after the other, with or without a tag
 * (`#jepsen.history.Op{...}`). Of a map count :type, :f, :process, :value, :error, and :owner, :lock, :token and
 * :fence, which docs/linearizable.md explains; any other key and its value - nested, tagged, commented, discarded - is
 * read over. Operations of processes that are not numbers (:nemesis) are passed over. */
#ifndef LOCKSTORM_CHECKERS_EDN_H
#define LOCKSTORM_CHECKERS_EDN_H

#include "checkers/text.h"

enum outside_result edn_read(struct text *text, struct operations *operations);

#endif
