/* A program that a client hosts, its lock library (docs/adapters.md): lines to its standard input, lines from its
 * standard output. It is of the client's process group, and ends with the client however that ends.
 *
 * Nothing here knows what the lines say, nor a clock or a turn: whoever has a session says how it waits. */
#ifndef LOCKSTORM_ADAPTER_SESSION_H
#define LOCKSTORM_ADAPTER_SESSION_H

#include "harness/env.h"

struct adapter_session;

struct adapter_wait {
    bool (*readable)(void *holder, int fd); /* returns when it can be read (true), or nobody waits any more */
    void *holder;
};

/* Starts the program at this path, without arguments; its errors go where ours go. NULL with errno. The caller frees
 * with adapter_session_close, which kills it. */
struct adapter_session *adapter_session_open(const char *path);
void adapter_session_close(struct adapter_session *session);

/* Sends a line, to which this adds its end. False: the program takes no more. */
bool adapter_session_tell(struct adapter_session *session, const char *line);

/* The next line, without its end, as a STRING that stays the session's until the next call; an ERROR, whose text says
 * so, when it has ended, or says more than ADAPTER_LINE_MOST bytes in one line; UNKNOWN when nobody waits any more. */
struct env_reply adapter_session_hear(struct adapter_session *session, const struct adapter_wait *wait);

enum { ADAPTER_LINE_MOST = 64 * 1024 };

#endif
