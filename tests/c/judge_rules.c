/* Judges a record of requests by the rules of applications. Standard input has a line for each event, in their order:
 *
 *   request consume 1            a request called consume is sent to instance 1; requests count from 1
 *   answered 1                   request 1 is answered
 *   struck                       a fault strikes
 *   1 lock-granted key user:1 session=3 owner=a lease=1000 at=5
 *
 * of an event: the request (0: not known), its kind, for locks the kind of lock, the object (+ for a space); then
 * words: session=N owner=T lease=MS (0: no end) at=MS tx=N (in transaction N) rr (REPEATABLE READ) relative conditional
 * inserts whole held timeout text=T. Prints "rule: sentence" for each finding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/rules/application_rules.h"

enum { LINE = 512, NS_PER_MS = 1000000 };

static const char *const LOCKS[] = {"-", "key", "list", "advisory", "advisory-tx", "row", "lease-row", "table"};

static void bad(const char *line) {
    fprintf(stderr, "judge_rules: what is %s\n", line);
    exit(2);
}

static int kind_of(const char *name) {
    for (int kind = 0; kind < WIRE_EVENT_KINDS; kind++)
        if (strcmp(wire_event_kind_name((enum wire_event_kind)kind), name) == 0) return kind;
    return -1;
}

static void word_read(const char *word, struct wire_event *event, char owner[64], char text[64]) {
    const char *value = strchr(word, '=');
    long long number = value ? strtoll(value + 1, NULL, 10) : 0;
    if (strncmp(word, "session=", 8) == 0) event->session = number;
    else if (strncmp(word, "owner=", 6) == 0) snprintf(owner, 64, "%s", value + 1);
    else if (strncmp(word, "text=", 5) == 0) snprintf(text, 64, "%s", value + 1);
    else if (strncmp(word, "lease=", 6) == 0) event->lease_ms = number;
    else if (strncmp(word, "at=", 3) == 0) event->asked_ns = event->answered_ns = number * NS_PER_MS;
    else if (strncmp(word, "tx=", 3) == 0) event->transaction = number, event->in_transaction = true;
    else if (strcmp(word, "rr") == 0) event->isolation = ISOLATION_REPEATABLE_READ;
    else if (strcmp(word, "relative") == 0) event->relative = true;
    else if (strcmp(word, "conditional") == 0) event->conditional = true;
    else if (strcmp(word, "inserts") == 0) event->inserts = true;
    else if (strcmp(word, "whole") == 0) event->whole_table = true;
    else if (strcmp(word, "held") == 0) event->refusal = REFUSED_HELD;
    else if (strcmp(word, "timeout") == 0) event->refusal = REFUSED_TIMEOUT;
    else bad(word);
}

static void event_read(struct rule_record *record, char *line) {
    char owner[64] = "", text[64] = "", *rest = NULL;
    char *request = strtok_r(line, " ", &rest), *kind = strtok_r(NULL, " ", &rest);
    int number = atoi(request), place = kind ? kind_of(kind) : -1;
    if (place < 0 || number > record->request_count) bad(line);
    struct wire_event event = {.kind = (enum wire_event_kind)place,
                               .service = WIRE_POSTGRES,
                               .object = "",
                               .text = text,
                               .reason = "",
                               .isolation = ISOLATION_READ_COMMITTED};
    char *lock = strncmp(kind, "lock-", 5) == 0 ? strtok_r(NULL, " ", &rest) : NULL;
    for (int each = 0; lock && each < (int)(sizeof LOCKS / sizeof LOCKS[0]); each++)
        if (strcmp(LOCKS[each], lock) == 0) event.lock = (enum wire_lock_kind)each;
    char *object = strncmp(kind, "transaction-", 12) == 0 ? NULL : strtok_r(NULL, " ", &rest);
    for (char *at = object; at && *at; at++)
        if (*at == '+') *at = ' ';
    if (object) event.object = object;
    for (char *word = strtok_r(NULL, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        word_read(word, &event, owner, text);
    event.owner = owner;
    rule_record_event(record, &event, number > 0 ? number - 1 : NO_REQUEST,
                      number > 0 ? record->requests[number - 1].instance : 0);
}

int main(void) {
    static struct rule_record record;
    static struct rule_findings findings;
    char line[LINE], name[64];
    int number;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#') continue;
        if (sscanf(line, "request %63s %d", name, &number) == 2) (void)rule_record_request(&record, name, number - 1);
        else if (sscanf(line, "answered %d", &number) == 1) rule_record_answer(&record, number - 1);
        else if (strcmp(line, "struck") == 0) record.is_struck = true;
        else event_read(&record, line);
    }
    application_rules_judge(&record, &findings);
    for (int each = 0; each < findings.count; each++)
        printf("%s: %s\n", application_rule_name((int)findings.of[each].rule), findings.of[each].sentence);
    rule_record_free(&record);
    return 0;
}
