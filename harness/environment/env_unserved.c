#include "harness/environment/env_unserved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct env_reply *unserved(const char *text) {
    static _Thread_local struct env_reply reply;
    reply = (struct env_reply){.kind = ENV_REPLY_ERROR, .text = text, .length = strlen(text)};
    return &reply;
}

static void exit_with(const char *sentence) {
    fprintf(stderr, "%s\n", sentence);
    exit(ENV_GAVE_UP);
}

/* The result does not depend on what was asked for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ENV_UNSERVED(result, name, parameters, arguments, value)                                                       \
    result env_unserved_##name parameters {                                                                            \
        return value;                                                                                                  \
    }
ENV_OPS_WITH_DEFAULT(ENV_UNSERVED, ENV_UNSERVED)
ENV_OPS_EXCEPT_REDIS(ENV_UNSERVED, ENV_UNSERVED)
