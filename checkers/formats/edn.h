/* Jepsen histories as EDN: a vector or list of maps, or one map after the other, with or without a tag
 * (`#jepsen.history.Op{...}`). The keys :type, :f, :process, :value, :error, :owner, :lock, :token and
 * :fence of a map are read (docs/linearizable.md explains them); any other key and its value - nested, tagged,
 * commented, discarded - is skipped. Operations of processes that are not numbers (:nemesis) are skipped, too. */
#pragma once

#include "checkers/formats/text.h"

enum parse_result edn_read(struct text *text, struct operations *operations);
