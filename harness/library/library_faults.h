/* What each fault does in the world of a library. */
#pragma once

#include "harness/library/library_state.h"

bool library_allows(const struct library_world *world, struct choice fault);
/* A fault that library_allows strikes. */
void library_strike(struct library_world *world, struct choice fault);
