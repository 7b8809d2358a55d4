#include "harness/explorer/search_json.h"

#include "harness/simulation/world.h"

json_t *groups_json(const struct search_tally *tally) {
    json_t *groups = json_array();
    for (int each = 0; each < tally->group_count; each++) {
        const struct search_group *group = &tally->groups[each];
        json_t *properties = json_array();
        for (int place = 0; CHECKER_TABLE[place]; place++)
            if (group->properties >> place & 1)
                json_array_append_new(properties, json_string(CHECKER_TABLE[place]->property));
        json_t *faults = json_array();
        for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
            if (group->faults >> kind & 1)
                json_array_append_new(faults, json_string(choice_fault_name((enum choice_kind)kind)));
        json_array_append_new(groups,
                              json_pack("{s:o,s:o,s:I,s:I}", "violates", properties, "faults", faults, "schedules",
                                        (json_int_t)group->schedules, "first", (json_int_t)group->first));
    }
    return groups;
}

json_t *struck_json(const struct schedule_search *search) {
    json_t *checkpoints = json_object();
    for (int place = 0; place <= search->world->checkpoint_count; place++) {
        json_t *faults = json_object();
        for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++) {
            uint64_t count = search->tally.struck[place][kind];
            if (count)
                json_object_set_new(faults, choice_fault_name((enum choice_kind)kind), json_integer((json_int_t)count));
        }
        json_object_set_new(checkpoints, place ? search->world->checkpoints[place] : "start", faults);
    }
    return checkpoints;
}

json_t *tally_json(const struct schedule_search *search) {
    const struct search_tally *tally = &search->tally;
    json_t *verdicts = json_object(), *faults = json_object();
    for (int each = 0; CHECKER_TABLE[each]; each++) {
        const uint64_t *count = tally->count[each];
        json_object_set_new(verdicts, CHECKER_TABLE[each]->property,
                            json_pack("{s:I,s:I,s:I,s:I}", "holds", (json_int_t)count[VERDICT_HOLDS], "violated",
                                      (json_int_t)count[VERDICT_VIOLATED], "inconclusive",
                                      (json_int_t)count[VERDICT_INCONCLUSIVE], "broken",
                                      (json_int_t)tally->broken[each]));
    }
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
        json_object_set_new(faults, choice_fault_name((enum choice_kind)kind),
                            json_integer((json_int_t)tally->faults[kind]));
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:s,s:o,s:o,s:o}", "commands", (json_int_t)tally->commands, "schedules",
                     (json_int_t)tally->schedules, "steps", (json_int_t)tally->steps, "cut_short",
                     (json_int_t)tally->cut_short, "inapplicable", (json_int_t)tally->inapplicable,
                     "inapplicable_reason", tally->inapplicable_reason, "verdicts", verdicts, "faults", faults,
                     "checkpoints", struck_json(search));
}

json_t *schedule_json(const struct schedule *schedule) {
    json_t *lines = json_array();
    char line[SCHEDULE_LINE];
    for (size_t each = 0; each < schedule->count; each++)
        json_array_append_new(lines, json_string(deviation_write(&schedule->deviations[each], line)));
    return lines;
}

json_t *broken_json(const struct search_outcome *outcome) {
    json_t *properties = json_array();
    for (int each = 0; CHECKER_TABLE[each]; each++)
        if (outcome->broken[each]) json_array_append_new(properties, json_string(CHECKER_TABLE[each]->property));
    return properties;
}

json_t *violated_json(const struct search_outcome *outcome) {
    json_t *properties = json_array();
    for (int each = 0; CHECKER_TABLE[each]; each++)
        if (outcome->status[each] == VERDICT_VIOLATED)
            json_array_append_new(properties, json_string(CHECKER_TABLE[each]->property));
    return properties;
}
