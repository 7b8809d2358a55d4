#include "harness/search/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const CALL_MODES[] = {"exclusive", "read", "write", "permits", NULL};
const char *const CALL_WAITS[] = {"none", "time", "forever", NULL};
const char *const CALL_LEASES[] = {"given", "renewed", "endless", "default", NULL};
const char *const CALL_OUTCOMES[] = {"unknown", "ok", "refused", NULL};
const char *const CALL_VERBS[] = {"acquire", "release", "renew", "is_held", "cancel", "work", "request", NULL};

int call_word_find(const char *const *words, const char *word) {
    for (int each = 0; word && words[each]; each++)
        if (strcmp(words[each], word) == 0) return each;
    return -1;
}

void workload_copy(struct workload *to, const struct workload *from) {
    to->clients = from->clients;
    memcpy(to->settings, from->settings, sizeof to->settings);
    for (int each = 0; each < WORKLOAD_THREADS_ALL; each++) {
        const struct workload_thread *thread = &from->threads[each];
        to->threads[each].count = thread->count;
        memcpy(to->threads[each].calls, thread->calls, (size_t)thread->count * sizeof thread->calls[0]);
    }
}

static void thread_match(struct workload_thread *thread) {
    for (int each = 0; each < thread->count; each++) {
        struct planned_call *call = &thread->calls[each];
        int depth = 0;
        call->match = -1;
        if (call->call.verb != CALL_ACQUIRE) continue;
        for (int after = each; after < thread->count && call->match < 0; after++) {
            const struct call *other = &thread->calls[after].call;
            if (other->again || other->lock != call->call.lock || other->mode != call->call.mode) continue;
            depth += (other->verb == CALL_ACQUIRE) - (other->verb == CALL_RELEASE);
            if (other->verb == CALL_RELEASE && depth == 0) call->match = after;
        }
    }
}

void workload_match(struct workload *workload) {
    for (int each = 0; each < WORKLOAD_THREADS_ALL; each++) thread_match(&workload->threads[each]);
}

int workload_calls(const struct workload *workload) {
    int calls = 0;
    for (int each = 0; each < WORKLOAD_THREADS_ALL; each++) calls += workload->threads[each].count;
    return calls;
}

struct planned_call *workload_call_add(struct workload *workload, int client, int thread, enum call_verb verb) {
    struct workload_thread *of = &workload->threads[workload_thread_number(client, thread)];
    if (of->count == WORKLOAD_CALLS) return NULL;
    if (client >= workload->clients) workload->clients = client + 1;
    struct planned_call *added = &of->calls[of->count++];
    *added = (struct planned_call){.call = {.client = client, .thread = thread, .verb = verb}, .match = -1};
    return added;
}

/* --- as text --- */

static void number_write(char *text, size_t room, const char *word, int64_t number) {
    if (number > 0) snprintf(text, room, "%s:%lld", word, (long long)number);
    else snprintf(text, room, "%s", word);
}

static int acquire_write(const struct planned_call *planned, char *text, size_t room) {
    const struct call *call = &planned->call;
    char wait[40], lease[40], cancel[40] = "";
    number_write(wait, sizeof wait, CALL_WAITS[call->wait], call->wait == WAIT_TIME ? call->wait_ms : 0);
    number_write(lease, sizeof lease, CALL_LEASES[call->lease], call->lease == LEASE_GIVEN ? call->lease_ms : 0);
    if (planned->cancel_after_ms > 0)
        snprintf(cancel, sizeof cancel, " cancel-after=%lld", (long long)planned->cancel_after_ms);
    return snprintf(text, room, " wait=%s lease=%s%s%s form=%s", wait, lease, cancel, call->over ? " over" : "",
                    planned->form);
}

const char *workload_line_write(const struct planned_call *planned, char line[WORKLOAD_LINE]) {
    const struct call *call = &planned->call;
    int used = snprintf(line, WORKLOAD_LINE, "client-%d thread-%d: %s", call->client + 1, call->thread + 1,
                        CALL_VERBS[call->verb]);
    if (call->verb == CALL_WORK) {
        snprintf(line + used, WORKLOAD_LINE - (size_t)used, " %lld", (long long)planned->work_ms);
        return line;
    }
    if (call->verb == CALL_REQUEST) {
        snprintf(line + used, WORKLOAD_LINE - (size_t)used, " %s", planned->form);
        return line;
    }
    used += snprintf(line + used, WORKLOAD_LINE - (size_t)used, " lock-%d resource-%d %s", call->lock + 1,
                     call->resource + 1, CALL_MODES[call->mode]);
    if (call->verb == CALL_ACQUIRE) {
        acquire_write(planned, line + used, WORKLOAD_LINE - (size_t)used);
        return line;
    }
    if (call->verb == CALL_RENEW && call->lease_ms > 0)
        used += snprintf(line + used, WORKLOAD_LINE - (size_t)used, " lease=given:%lld", (long long)call->lease_ms);
    if (planned->cancel_at > 0)
        used += snprintf(line + used, WORKLOAD_LINE - (size_t)used, " cancel-at=%d", planned->cancel_at - 1);
    snprintf(line + used, WORKLOAD_LINE - (size_t)used, "%s%s", call->over ? " over" : "", call->again ? " again" : "");
    return line;
}

/* WORD or WORD:NUMBER. */
static bool option_read(const char *text, const char *const *words, int *place, int64_t *number) {
    char word[24];
    size_t length = strcspn(text, ":");
    if (length >= sizeof word) return false;
    memcpy(word, text, length);
    word[length] = '\0';
    *place = call_word_find(words, word);
    char *end = NULL;
    *number = text[length] ? strtoll(text + length + 1, &end, 10) : 0;
    return *place >= 0 && (!end || (*end == '\0' && *number > 0 && *number < 1000000000));
}

static bool options_read(char *words, struct planned_call *planned, const char **reason) {
    struct call *call = &planned->call;
    char *form = strstr(words, " form=");
    if (form) {
        snprintf(planned->form, sizeof planned->form, "%s", form + strlen(" form="));
        *form = '\0';
    }
    for (char *rest, *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        int place = 0, used = 0;
        int64_t number = 0;
        *reason =
            "after the mode follow wait=none|time:MS|forever, lease=given:MS|renewed|endless|default, cancel-after=MS, "
            "cancel-at=N, over, again, form=NAME";
        if (strncmp(word, "wait=", 5) == 0 && option_read(word + 5, CALL_WAITS, &place, &number)) {
            call->wait = (enum call_wait)place;
            call->wait_ms = call->wait == WAIT_TIME ? number : call->wait == WAIT_FOREVER ? -1 : 0;
            if (call->wait == WAIT_TIME && number == 0) return false;
        } else if (strncmp(word, "lease=", 6) == 0 && option_read(word + 6, CALL_LEASES, &place, &number)) {
            call->lease = (enum call_lease)place;
            call->lease_ms = number;
            if ((call->lease == LEASE_GIVEN) != (number > 0)) return false;
        } else if (strncmp(word, "cancel-after=", 13) == 0) {
            planned->cancel_after_ms = strtoll(word + 13, NULL, 10);
            if (planned->cancel_after_ms <= 0) return false;
        } else if (strncmp(word, "cancel-at=", 10) == 0) {
            if (sscanf(word + 10, "%2d%n", &place, &used) != 1 || place < 0 || word[10 + used]) return false;
            planned->cancel_at = place + 1;
        } else if (strcmp(word, "over") == 0) call->over = true;
        else if (strcmp(word, "again") == 0) call->again = true;
        else return false;
    }
    return true;
}

static bool settings_line_read(struct workload *workload, const char *words) {
    snprintf(workload->settings, sizeof workload->settings, "%s", words);
    if (strlen(words) >= sizeof workload->settings) return false;
    for (const char *word = words, *end; *word; word = end + strspn(end, " ")) {
        end = word + strcspn(word, " ");
        const char *equals = memchr(word, '=', (size_t)(end - word));
        if (!equals || equals == word || equals + 1 == end) return false;
    }
    return words[0] != '\0';
}

bool workload_line_read(struct workload *workload, const char *line, const char **reason) {
    int client, thread, lock, resource, used = 0, more = 0;
    char verb[16], mode[16], rest[WORKLOAD_LINE];
    *reason = "settings are: settings NAME=VALUE ...";
    if (strncmp(line, "settings ", 9) == 0) return settings_line_read(workload, line + 9);
    *reason = "a call is: client-N thread-N: acquire|release|renew|is_held lock-N resource-N MODE ..., or: work MS";
    if (sscanf(line, "client-%d thread-%d: %15s%n", &client, &thread, verb, &used) != 3 || used == 0) return false;
    int place = call_word_find(CALL_VERBS, verb);
    if (client < 1 || client > WORKLOAD_CLIENTS || thread < 1 || thread > WORKLOAD_THREADS || place < 0) return false;
    struct planned_call *added = workload_call_add(workload, client - 1, thread - 1, (enum call_verb)place);
    *reason = "a thread has too many calls";
    if (!added) return false;
    *reason = "work has a number of milliseconds, at most 10^9";
    if (place == CALL_WORK)
        return sscanf(line + used, " %lld %n", (long long *)&added->work_ms, &more) == 1 && line[used + more] == '\0' &&
               added->work_ms >= 0 && added->work_ms <= 1000000000;
    *reason = "a request has a name";
    if (place == CALL_REQUEST)
        return sscanf(line + used, " %95s%n", added->form, &more) == 1 && line[used + more] == '\0';
    *reason = "after the verb follow lock-N resource-N and exclusive, read, write or permits";
    if (sscanf(line + used, " lock-%d resource-%d %15s%n", &lock, &resource, mode, &more) != 3) return false;
    int mode_place = call_word_find(CALL_MODES, mode);
    if (lock < 1 || resource < 1 || lock > 99 || resource > 9 || mode_place < 0) return false;
    added->call.lock = lock - 1;
    added->call.resource = resource - 1;
    added->call.mode = (enum call_mode)mode_place;
    snprintf(rest, sizeof rest, "%s", line + used + more);
    added->call.lease = LEASE_DEFAULT;
    if (!options_read(rest, added, reason)) return false;
    *reason = "only a release or renewal has cancel-at=N, and only a release again";
    bool ends = place == CALL_RELEASE || place == CALL_RENEW;
    if ((added->cancel_at > 0 && !ends) || (added->call.again && place != CALL_RELEASE)) return false;
    *reason = "an acquire ends with form=NAME";
    if (place == CALL_ACQUIRE) return added->form[0] != '\0';
    *reason = "only an acquire has a wait, a form and a lease that is not given; a renewal may have lease=given:MS";
    bool plain = added->call.wait == WAIT_NONE && !added->form[0] && added->cancel_after_ms == 0;
    return plain && (added->call.lease == LEASE_DEFAULT || (place == CALL_RENEW && added->call.lease == LEASE_GIVEN));
}
