/* A file of any form as operations. */
#ifndef LOCKSTORM_CHECKERS_SOURCE_H
#define LOCKSTORM_CHECKERS_SOURCE_H

#include "checkers/linearize.h"
#include "checkers/recorded.h"
#include "checkers/text.h"

struct source {
    struct limits limits;
    struct operations operations;
    struct recorded recorded;
    enum linearize_form form;
};

/* False: the file is not what it should be, *error says why. A limit that was reached is none: source->limits has it.
 * The caller ends it with source_end in either case. */
bool source_read(struct source *source, const char *path, const struct linearize_settings *settings,
                 struct history_error *error);
void source_end(struct source *source);

/* The name of a process: "client-1", "process 3". Returns the buffer. */
const char *source_process(const struct source *source, uint32_t process, char *buffer, size_t size);
/* What an event is called: "record" or "event". */
const char *source_event(const struct source *source);

#endif
