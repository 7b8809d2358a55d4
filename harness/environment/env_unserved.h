/* What a call of the environment returns where it is not served: an ERROR, OUTCOME_REFUSED or false, at once. An
 * implementation puts these into the slots of struct env_ops that it does not fill itself. give_up prints the sentence
 * and exits with ENV_GAVE_UP, here too. */
#pragma once

#include "harness/environment/env_ops.h"

#define ENV_UNSERVED_DECLARED(result, name, parameters, ...) result env_unserved_##name parameters;
ENV_OPS_WITH_DEFAULT(ENV_UNSERVED_DECLARED, ENV_UNSERVED_DECLARED)
ENV_OPS_EXCEPT_REDIS(ENV_UNSERVED_DECLARED, ENV_UNSERVED_DECLARED)

/* The slots of an environment whose nodes are Redis servers and which hosts no adapter. */
#define ENV_UNSERVED_SLOT(result, name, ...) .name = env_unserved_##name,
#define ENV_UNSERVED_EXCEPT_REDIS                                                                                      \
    ENV_OPS_EXCEPT_REDIS(ENV_UNSERVED_SLOT, ENV_UNSERVED_SLOT).give_up = env_unserved_give_up
