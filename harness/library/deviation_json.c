#include "harness/library/library_world.h"

#include <assert.h>
#include <stdio.h>

static const char *planned_name(const struct planned_call *planned) {
    return planned->call.verb == CALL_REQUEST ? planned->form : CALL_VERBS[planned->call.verb];
}

/* What a step is about: the command of a message, or the verb of the next call; empty: nothing that has a name. */
static const char *step_subject(const struct library_world *world, struct choice step, char name[LINK_COMMAND]) {
    name[0] = '\0';
    if (step.kind == CHOICE_CALL) {
        const struct library_thread *state =
            &world->clients[step.who / WORKLOAD_THREADS].threads[step.who % WORKLOAD_THREADS];
        const struct workload_thread *calls = &world->workload.threads[step.who];
        if (state->next < calls->count) snprintf(name, LINK_COMMAND, "%.23s", planned_name(&calls->calls[state->next]));
        return name;
    }
    bool message =
        step.kind == CHOICE_REQUEST || step.kind == CHOICE_ANSWER || choice_strikes(step.kind, TARGET_MESSAGE);
    const struct library_link *link = message ? library_link_look(world->clients, step.who) : NULL;
    if (!link) return name;
    if (step.kind != CHOICE_ANSWER && step.kind != CHOICE_HOLD_REPLY) return link_request_command(link, name);
    snprintf(name, LINK_COMMAND, "%s", link->asked_command);
    return name;
}

void library_deviation_note(struct library_world *world) {
    if (!world->played || world->played->count == world->noted) return;
    assert(world->played->count == world->noted + 1); /* a schedule grows by one while it is played */
    char line[SCHEDULE_LINE], usual[LINK_COMMAND], instead[LINK_COMMAND];
    const struct deviation *last = &world->played->deviations[world->played->count - 1];
    world->noted = world->played->count;
    deviation_write(&HOSTED_CHOICES, last, line);
    json_array_append_new(world->deviations,
                          json_pack("{s:s,s:s,s:s,s:I}", "line", line, "usual", step_subject(world, last->usual, usual),
                                    "instead", step_subject(world, last->instead, instead), "event",
                                    (json_int_t)world->event_count));
}
