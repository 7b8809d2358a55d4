#include "harness/library/library_offer.h"

#include <stdio.h>
#include <string.h>

const char *const LIBRARY_TOPOLOGIES[] = {"single", "sentinel", "cluster", NULL};
static const char *const TOLD[] = {"push", "blocking-pop", "in-server", NULL}; /* `waits`: a release wakes a waiter */

static bool wrong(char *reason, const char *key) {
    snprintf(reason, OFFER_REASON, "hello: %s is not what protocol 2 allows there", key);
    return false;
}

/* A list of words as bits. False for an unknown word. */
static bool bits_read(const json_t *list, const char *const *words, unsigned *bits) {
    *bits = 0;
    for (size_t each = 0; each < json_array_size(list); each++) {
        int place = call_word_find(words, json_string_value(json_array_get(list, each)));
        if (place < 0) return false;
        *bits |= 1U << place;
    }
    return *bits != 0;
}

/* A list of calls, which may be missing. */
static bool verbs_read(const json_t *list, unsigned *bits) {
    *bits = 0;
    return json_array_size(list) == 0 || bits_read(list, CALL_VERBS, bits);
}

static bool word_in(const json_t *list, const char *word) {
    for (size_t each = 0; each < json_array_size(list); each++) {
        const char *found = json_string_value(json_array_get(list, each));
        if (found && strcmp(found, word) == 0) return true;
    }
    return false;
}

static int64_t offer_number_of(const json_t *body, const char *key, int64_t usual) {
    const json_t *number = json_object_get(body, key);
    return json_is_integer(number) && json_integer_value(number) > 0 ? json_integer_value(number) : usual;
}

static void text_of(const json_t *body, const char *key, char *text) {
    const char *found = json_string_value(json_object_get(body, key));
    snprintf(text, OFFER_NAME, "%s", found ? found : "");
}

static bool offer_form_read(const json_t *body, const struct library_offer *offer, struct library_form *form) {
    const json_t *operations = json_object_get(body, "operations");
    text_of(body, "form", form->name);
    form->lease_unit_ms = offer_number_of(body, "lease_unit_ms", offer->facts.lease_unit_ms);
    form->wait_unit_ms = offer_number_of(body, "wait_unit_ms", 1);
    form->renews = operations ? word_in(operations, "renew") : offer->renews;
    form->answers_is_held = operations ? word_in(operations, "is_held") : offer->answers_is_held;
    return form->name[0] && bits_read(json_object_get(body, "wait"), CALL_WAITS, &form->waits) &&
           bits_read(json_object_get(body, "lease"), CALL_LEASES, &form->leases);
}

static bool forms_read(const json_t *forms, struct library_offer *offer, char *reason) {
    size_t count = json_array_size(forms);
    if (count == 0 || count > OFFER_FORMS) return wrong(reason, "forms");
    for (size_t each = 0; each < count; each++)
        if (!offer_form_read(json_array_get(forms, each), offer, &offer->forms[each])) return wrong(reason, "forms");
    offer->form_count = (int)count;
    return true;
}

static bool word_read(const json_t *value, char word[OFFER_WORD]) {
    int length = json_is_integer(value)
                     ? snprintf(word, OFFER_WORD, "%lld", (long long)json_integer_value(value))
                     : snprintf(word, OFFER_WORD, "%s", json_is_string(value) ? json_string_value(value) : "");
    return length > 0 && length < OFFER_WORD && !strpbrk(word, " =#");
}

static bool settings_read(const json_t *settings, struct library_offer *offer) {
    if (json_array_size(settings) > OFFER_SETTINGS) return false;
    for (size_t each = 0; each < json_array_size(settings); each++) {
        struct library_setting *setting = &offer->settings[offer->setting_count++];
        const json_t *body = json_array_get(settings, each), *values = json_object_get(body, "values");
        size_t count = json_array_size(values);
        if (!word_read(json_object_get(body, "name"), setting->name) || count == 0 || count > OFFER_VALUES)
            return false;
        for (; setting->count < (int)count; setting->count++)
            if (!word_read(json_array_get(values, (size_t)setting->count), setting->values[setting->count]))
                return false;
    }
    return true;
}

static void keeps_read(const json_t *keeps, struct library_offer *offer) {
    for (size_t each = 0; each < json_array_size(keeps) && each < OFFER_KEEPS; each++) {
        const char *key = json_string_value(json_array_get(keeps, each));
        snprintf(offer->keeps[offer->keep_count++], OFFER_NAME, "%s", key ? key : "");
    }
}

bool offer_read(const json_t *hello, int64_t lease_ms, int permits, struct library_offer *offer, char *reason) {
    static const char *const OWNERS[] = {"thread", "object", "thread-object", NULL};
    static const char *const NOTICES[] = {"never", "renewal", "lease", NULL};
    const char *notice = json_string_value(json_object_get(hello, "loss_notice"));
    int notice_place = notice ? call_word_find(NOTICES, notice) : LOSS_NOT_TOLD;
    const json_t *operations = json_object_get(hello, "operations"), *reenters = json_object_get(hello, "reenters");
    const json_t *modes = json_object_get(hello, "modes"), *owner = json_object_get(hello, "owner");
    const json_t *topology = json_object_get(hello, "topology");
    const char *service = json_string_value(json_object_get(hello, "service"));
    int topology_place = topology ? call_word_find(LIBRARY_TOPOLOGIES, json_string_value(topology)) : 0;
    int owner_place = owner ? call_word_find(OWNERS, json_string_value(owner)) : 0;
    *offer =
        (struct library_offer){.modes = 1U << MODE_EXCLUSIVE, .threads = (int)offer_number_of(hello, "threads", 1)};
    const char *waits = json_string_value(json_object_get(hello, "waits"));
    text_of(hello, "name", offer->name);
    text_of(hello, "version", offer->version);
    text_of(hello, "lease_key", offer->lease_key);
    if (owner_place < 0) return wrong(reason, "owner");
    if (topology_place < 0) return wrong(reason, "topology");
    if (notice_place < 0) return wrong(reason, "loss_notice");
    offer->topology = (enum library_topology)topology_place;
    if (modes && !bits_read(modes, CALL_MODES, &offer->modes)) return wrong(reason, "modes");
    offer->facts = (struct library_facts){.owner = (enum call_owner)owner_place,
                                          .permits = json_is_true(json_object_get(hello, "semaphore")) ? permits : 1,
                                          .default_lease_ms = lease_ms,
                                          .watchdog_divisor = (int)offer_number_of(hello, "watchdog_divisor", 3),
                                          .lease_unit_ms = offer_number_of(hello, "lease_unit_ms", 1),
                                          .reenters = word_in(reenters, "same"),
                                          .write_reads = word_in(reenters, "write-read"),
                                          .tokens = json_is_true(json_object_get(hello, "token")),
                                          .validity = json_is_true(json_object_get(hello, "validity")),
                                          .lease_key = offer->lease_key[0] != '\0',
                                          .transactions = service && strcmp(service, "postgres") == 0,
                                          .fair = json_is_true(json_object_get(hello, "fair")),
                                          .told = waits && call_word_find(TOLD, waits) >= 0,
                                          .parts = json_is_true(json_object_get(hello, "parts")),
                                          .nodes = (int)offer_number_of(hello, "nodes", 1),
                                          .lenient_release = json_is_true(json_object_get(hello, "lenient_release")),
                                          .silence_ms = offer_number_of(hello, "silence_ms", 0),
                                          .loss_notice = (enum loss_notice)notice_place,
                                          .timer_ms = offer_number_of(hello, "timer_ms", 1),
                                          .place_ms = offer_number_of(hello, "place_ms", 0),
                                          .poll_ms = offer_number_of(hello, "poll_ms", 0)};
    offer->is_tcp = json_is_true(json_object_get(hello, "tcp"));
    offer->cancels = json_is_true(json_object_get(hello, "cancel"));
    offer->renews = word_in(operations, "renew");
    offer->renews_for = json_is_true(json_object_get(hello, "renew_lease"));
    offer->answers_is_held = word_in(operations, "is_held");
    offer->holds_two = json_is_true(json_object_get(hello, "holds_two"));
    offer->protocol = (int)offer_number_of(hello, "protocol", 2);
    if (!verbs_read(json_object_get(hello, "cancels"), &offer->cancels_of)) return wrong(reason, "cancels");
    if (!verbs_read(json_object_get(hello, "over"), &offer->asks_over)) return wrong(reason, "over");
    if (!settings_read(json_object_get(hello, "settings"), offer)) return wrong(reason, "settings");
    keeps_read(json_object_get(hello, "keeps"), offer);
    offer->lease_of_object = word_in(json_object_get(hello, "of_object"), "lease_ms");
    offer->wait_of_object = word_in(json_object_get(hello, "of_object"), "wait_ms");
    offer->form_of_object = word_in(json_object_get(hello, "of_object"), "form");
    return forms_read(json_object_get(hello, "forms"), offer, reason);
}

bool offer_restrict(struct library_offer *offer, const char *const *names, int count, char *reason) {
    bool found[OFFER_FORMS] = {false};
    int kept = 0;
    for (int form = 0; form < offer->form_count; form++) {
        bool is_named = false;
        for (int each = 0; each < count; each++)
            if (strcmp(offer->forms[form].name, names[each]) == 0) is_named = found[each] = true;
        if (is_named) offer->forms[kept++] = offer->forms[form];
    }
    offer->form_count = kept;
    for (int each = 0; each < count; each++)
        if (!found[each]) {
            snprintf(reason, OFFER_REASON, "the library has no form \"%.*s\"", OFFER_NAME, names[each]);
            return false;
        }
    return true;
}
