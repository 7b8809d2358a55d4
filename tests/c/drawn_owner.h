/* For plug-ins of tests: an owner that is drawn anew for each acquire. */
#pragma once

#include <stdio.h>

#include "lockstorm.h"

#define RESOURCE lock->options.resource, lock->options.resource_length

struct state {
    char me[33];
};

static void draw(struct lock *lock) {
    struct state *self = lock->state;
    snprintf(self->me, sizeof self->me, "%016llx%016llx", (unsigned long long)env_random(lock->env),
             (unsigned long long)env_random(lock->env));
}
