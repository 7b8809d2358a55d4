/* A program with a lock library that a client hosts (docs/adapters.md): lines to its standard input, lines from its
 * standard output. It belongs to the client's process group and ends with the client, however that ends. The content of
 * the lines is the business of harness/locks/adapter. */
#pragma once

#include "harness/environment/env.h"
#include "harness/environment/live_task.h"

struct adapter_session;

struct adapter_launch {
    const char *program;    /* the path; NULL: the client hosts none */
    const char *supervisor; /* the path of what runs it in virtual time (harness/supervisor); NULL: in real time */
    const char *page;       /* in virtual time: the path of the shared page */
    int64_t life;           /* of its client, from 0: the next life of one that was killed has other random numbers */
};

/* Starts the program, without arguments; its standard error is the client's. In virtual time its supervisor becomes
 * `task`; when that is killed, the client ends with ENV_GAVE_UP. NULL with errno. The caller frees with
 * adapter_session_close, which kills the program. */
struct adapter_session *adapter_session_open(const struct adapter_launch *launch, struct task *task);
void adapter_session_close(struct adapter_session *session);

/* Sends a line, to which this adds the line's end. False: the program reads no more. */
bool adapter_session_send(struct adapter_session *session, const char *line);

/* The next line, without its end, as a STRING that is the session's until the next call; an ERROR, whose text says so,
 * when the program has ended or writes more than ADAPTER_LINE_MOST bytes in one line; UNKNOWN when the wait is over. */
struct env_reply adapter_session_receive(struct adapter_session *session, const struct live_wait *wait);

enum { ADAPTER_LINE_MOST = 64 * 1024 };
