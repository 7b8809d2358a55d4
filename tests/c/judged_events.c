/* judged_events HISTORY [not-happened]: what the judge tells checkers of each record, a line of numbers each: its index
 * and kind, the names of the lock, of the actor and of the member (its lock and its actor), the index of the
 * invocation, and whether it failed. "not-happened": failed releases are read as not happened.
 *
 * Exit status: 0; 2 bad usage or no history. */
#include <stdio.h>
#include <string.h>

#include "checkers/engine/judge.h"

static void show(struct checking *my, const struct event *event) {
    (void)my;
    const struct check_member *member = event->member;
    printf("%llu %u %u %u %u %u %llu %d\n", (unsigned long long)event->index, event->record->kind,
           event->lock ? event->lock->name : 0, event->actor ? event->actor->name : 0, member ? member->lock->name : 0,
           member ? member->actor->name : 0, (unsigned long long)event->asked, event->failed);
}

static void finish(struct checking *my) {
    verdict_decide(&my->verdict, false, "it only shows");
}

static struct checker probe = {.property = "probe", .finish = finish};

const struct checker *const CHECKER_TABLE[] = {&probe, NULL};

int main(int argc, char **argv) {
    static struct judgement judgement;
    struct history_error error = {"usage: judged_events HISTORY [not-happened]"};
    bool failed = argc == 3 && strcmp(argv[2], "not-happened") == 0;
    struct history_reader *reader = argc == 2 || failed ? history_reader_open(argv[1], &error) : NULL;
    if (!reader) {
        fprintf(stderr, "judged_events: %s\n", error.text);
        return 2;
    }
    for (int kind = 0; kind < HISTORY_KIND_COUNT; kind++) probe.on[kind] = show;
    bool whole = judge(&judgement, reader, (struct check_reading){.releases_failed = failed});
    judge_close(&judgement);
    history_reader_close(reader);
    return whole ? 0 : 2;
}
