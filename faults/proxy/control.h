/* The control port: RESP requests on a unix socket, answered in order. Errors are sentences. */
#ifndef LOCKSTORM_CONTROL_H
#define LOCKSTORM_CONTROL_H

#include "faults/proxy/flow.h"

struct control;

/* What a request is answered with; text that grows. */
struct answer_text {
    char *bytes;
    size_t length, room;
};
void say(struct answer_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say_error(struct answer_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say_text(struct answer_text *out, const char *text); /* as a bulk string */

enum verdict {
    COMMAND_DONE,     /* the answer is there */
    COMMAND_SETTLE,   /* it comes when nothing is left to do */
    COMMAND_TARGETS,  /* the same, and says who has heard of something */
    COMMAND_QUIT,     /* the caller's connection ends after it */
    COMMAND_SHUTDOWN, /* the program does */
};

/* Does what the words say (commands.c). */
enum verdict command_serve(struct proxy *proxy, const struct span *words, size_t count, struct answer_text *out);

/* Listens at the path; NULL with a sentence in *error. The proxy must outlive it. */
struct control *control_open(struct proxy *proxy, const char *path, struct rule_error *error);
void control_close(struct control *control);

#endif
