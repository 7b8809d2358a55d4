/* How a session waits for its socket. Sessions know neither a clock nor a turn: their caller passes one of these. */
#pragma once

#include <stdbool.h>

struct session_wait {
    bool (*readable)(void *holder, int fd); /* true when the descriptor can be read, false when the wait is over */
    void *holder;
};
