#include "harness/lockstorm/native/describe_tables.h"

#include <jansson.h>
#include <stdlib.h>

#include "faults/common/fault.h"
#include "harness/locks/common/describe_lock.h"

static char *dump(json_t *list) {
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return text;
}

static char *describe_table(const struct lock_type *const *table) {
    json_t *list = json_array();
    for (; *table; table++) json_array_append_new(list, describe_lock(*table));
    return dump(list);
}

char *describe_locks(void) {
    return describe_table(LOCK_TABLE);
}

char *describe_zoo(void) {
    return describe_table(LOCK_ZOO);
}

static json_t *describe_tables_fault_options(const struct fault *fault) {
    json_t *list = json_array();
    for (const struct fault_option_type *word = fault->options; word && word->name; word++)
        json_array_append_new(list, json_pack("{s:s,s:s?,s:s}", "name", word->name, "usual", word->default_value,
                                              "meaning", word->meaning));
    return list;
}

static json_t *fault_times(const struct fault *fault) {
    json_t *list = json_array();
    if (fault->times & FAULT_VIRTUAL) json_array_append_new(list, json_string("virtual"));
    if (fault->times & FAULT_REAL) json_array_append_new(list, json_string("real"));
    return list;
}

/* What a fault is in each world; null: it is not there, and "absent" says why. */
static json_t *fault_worlds(const struct fault_row *row) {
    static const char *const worlds[FAULT_WORLDS] = {"trial", "simulation", "library"};
    json_t *object = json_object();
    for (int each = 0; each < FAULT_WORLDS; each++)
        json_object_set_new(object, worlds[each],
                            json_pack("{s:s?,s:s?}", "is", row->is[each], "is_not", row->is_not[each]));
    return object;
}

/* What only a trial has: options, and when the proof is taken. */
static json_t *fault_in_trial(const struct fault *fault) {
    static const char *const moments[] = {"at once", "before it is healed", "when it is healed"};
    if (!fault)
        return json_pack("{s:s,s:s,s:s,s:[],s:[]}", "target", "", "proved", moments[0], "explanation", "", "options",
                         "times");
    return json_pack("{s:s,s:s,s:s,s:o,s:o}", "target", fault->target, "proved", moments[fault->moment], "explanation",
                     fault->explanation, "options", describe_tables_fault_options(fault), "times", fault_times(fault));
}

char *describe_faults(void) {
    json_t *list = json_array();
    for (enum fault_id id = 0; id < FAULT_IDS; id++) {
        const struct fault_row *row = &FAULT_ROWS[id];
        json_t *object =
            json_pack("{s:s,s:s,s:s,s:s,s:s?,s:o}", "name", row->name, "summary", row->meaning, "proof", row->proof,
                      "source", row->source, "old_name", row->old_name, "worlds", fault_worlds(row));
        json_object_update_new(object, fault_in_trial(fault_find(row->name)));
        json_array_append_new(list, object);
    }
    return dump(list);
}

void describe_free(char *text) {
    free(text);
}
