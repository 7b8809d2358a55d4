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

char *describe_faults(void) {
    static const char *const moments[] = {"at once", "before it is healed", "when it is healed"};
    json_t *list = json_array();
    for (const struct fault *const *each = FAULT_TABLE; *each; each++) {
        const struct fault *fault = *each;
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:o}", "name", fault->name, "summary",
                                              fault->summary, "target", fault->target, "proof", fault->proof, "proved",
                                              moments[fault->moment], "explanation", fault->explanation, "source",
                                              fault->source, "options", describe_tables_fault_options(fault), "times",
                                              fault_times(fault)));
    }
    return dump(list);
}

void describe_free(char *text) {
    free(text);
}
