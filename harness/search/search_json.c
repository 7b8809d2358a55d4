#include "harness/search/search.h"

/* A count of each fault that the world has, in its order; `every`: also of those that did not strike. */
static json_t *fault_counts_json(const struct choice_space *space, const uint64_t *counts, bool every) {
    json_t *faults = json_object();
    for (int each = 0; each < space->fault_count; each++) {
        enum choice_kind kind = space->faults[each];
        if (every || counts[kind])
            json_object_set_new(faults, choice_fault_name(kind), json_integer((json_int_t)counts[kind]));
    }
    return faults;
}

static json_t *fault_names_json(const struct choice_space *space, uint32_t faults) {
    json_t *names = json_array();
    for (int each = 0; each < space->fault_count; each++)
        if (faults >> space->faults[each] & 1)
            json_array_append_new(names, json_string(choice_fault_name(space->faults[each])));
    return names;
}

static json_t *property_names_json(const struct search_world *world, uint32_t properties) {
    json_t *names = json_array();
    for (int each = 0; each < world->property_count; each++)
        if (properties >> each & 1) json_array_append_new(names, json_string(world->property_name(each)));
    return names;
}

json_t *groups_json(const struct search *search) {
    json_t *groups = json_array();
    for (int each = 0; each < search->tally.group_count; each++) {
        const struct search_group *group = &search->tally.groups[each];
        json_array_append_new(groups, json_pack("{s:o,s:o,s:I,s:I}", "violates",
                                                property_names_json(search->world, group->properties), "faults",
                                                fault_names_json(search->world->space, group->faults), "schedules",
                                                (json_int_t)group->schedules, "first", (json_int_t)group->first));
    }
    return groups;
}

json_t *struck_json(const struct search *search) {
    json_t *places = json_object();
    for (int place = 0; place < SEARCH_PLACES; place++) {
        const char *name = search->world->operations->place_name(search->world, place);
        if (name)
            json_object_set_new(places, name,
                                fault_counts_json(search->world->space, search->tally.struck[place], false));
    }
    return places;
}

json_t *tally_json(const struct search *search) {
    const struct search_tally *tally = &search->tally;
    json_t *verdicts = json_object();
    for (int each = 0; each < search->world->property_count; each++) {
        const uint64_t *count = tally->count[each];
        json_object_set_new(verdicts, search->world->property_name(each),
                            json_pack("{s:I,s:I,s:I,s:I}", "holds", (json_int_t)count[VERDICT_HOLDS], "violated",
                                      (json_int_t)count[VERDICT_VIOLATED], "inconclusive",
                                      (json_int_t)count[VERDICT_INCONCLUSIVE], "broken",
                                      (json_int_t)tally->broken[each]));
    }
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:I,s:s,s:I,s:s,s:o,s:o,s:o}", "schedules",
                     (json_int_t)tally->schedules, "steps", (json_int_t)tally->steps, "calls", (json_int_t)tally->calls,
                     "commands", (json_int_t)tally->commands, "sessions", (json_int_t)tally->sessions, "cut_short",
                     (json_int_t)tally->cut_short, "inapplicable", (json_int_t)tally->inapplicable,
                     "inapplicable_reason", tally->inapplicable_reason, "unplayed", (json_int_t)tally->unplayed,
                     "unplayed_reason", tally->unplayed_reason, "unrepeated", (json_int_t)tally->unrepeated,
                     "unrepeated_reason", tally->unrepeated_reason, "verdicts", verdicts, "faults",
                     fault_counts_json(search->world->space, tally->faults, true), "checkpoints", struck_json(search));
}

json_t *schedule_json(const struct choice_space *space, const struct schedule *schedule) {
    json_t *calls = json_array(), *lines = json_array();
    char line[SCHEDULE_LINE];
    if (schedule->workload.settings[0])
        json_array_append_new(calls, json_sprintf("settings %s", schedule->workload.settings));
    for (int thread = 0; thread < WORKLOAD_THREADS_ALL; thread++)
        for (int each = 0; each < schedule->workload.threads[thread].count; each++)
            json_array_append_new(
                calls, json_string(workload_line_write(&schedule->workload.threads[thread].calls[each], line)));
    for (size_t each = 0; each < schedule->count; each++)
        json_array_append_new(lines, json_string(deviation_write(space, &schedule->deviations[each], line)));
    return json_pack("{s:i,s:o,s:o}", "clients", schedule->workload.clients, "workload", calls, "schedule", lines);
}

static uint32_t bits_of(const bool *flags) {
    uint32_t bits = 0;
    for (int each = 0; each < SEARCH_PROPERTIES; each++) bits |= (uint32_t)flags[each] << each;
    return bits;
}

json_t *broken_json(const struct search_world *world, const struct search_outcome *outcome) {
    return property_names_json(world, bits_of(outcome->broken));
}

json_t *violated_json(const struct search_world *world, const struct search_outcome *outcome) {
    bool violated[SEARCH_PROPERTIES];
    for (int each = 0; each < SEARCH_PROPERTIES; each++) violated[each] = outcome->status[each] == VERDICT_VIOLATED;
    return property_names_json(world, bits_of(violated));
}
