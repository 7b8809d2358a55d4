/* quiet_phase: when may the quiet phase of a schedule begin? Not while a pause, a held request, a late command or a
 * stalled replica lasts; what is on its way by itself is no obstacle.
 *
 * Prints one JSON line: for each case whether it may. Exit status: 0. */
#include <stdio.h>
#include <string.h>

#include "harness/simulation/world.h"

enum { CLIENTS = 2, HELD_TASK = 3, NOW_NS = 5000 };

static struct world world;
static struct shared_page page;
static char command[] = "PING";

/* All commands of all clients are on their way. */
static void world_reset(void) {
    memset(&world, 0, sizeof world);
    page.time = HISTORY_TIME_VIRTUAL;
    atomic_store(&page.mono_ns, NOW_NS);
    world.page = &page;
    world.settings.nodes = 2;
    world.settings.replicas = 1;
    world.client_count = CLIENTS;
    for (int number = 0; number < TASKS_PER_CLIENT * CLIENTS; number++)
        world_task(&world, number)->state = EXPLORED_TASK_SENDING;
}

static const char *separator = "{";

static void say(const char *name) {
    bool allowed = world_allows(&world.search, (struct choice){.kind = CHOICE_QUIET});
    printf("%s\"%s\": %s", separator, name, allowed ? "true" : "false");
    separator = ", ";
}

int main(void) {
    world_reset();
    say("commands are on their way");
    world_task(&world, HELD_TASK)->held_until_ns = NOW_NS + 1;
    say("a request is held");
    world_task(&world, HELD_TASK)->state = EXPLORED_TASK_AWAITING;
    say("a request was held and has arrived");
    world_task(&world, HELD_TASK)->reply_held_until_ns = NOW_NS + 1;
    say("a reply is held");
    world_reset();
    world.clients[1].paused_until_ns = NOW_NS + 1;
    say("a client is paused");
    world.clients[1].gone = true;
    say("a paused client was killed");
    world_reset();
    world.late_count = 1;
    world.late[0].bytes = command;
    say("a command is late");
    world.late[0].bytes = NULL;
    say("a late command has arrived");
    world.nodes[1].stalled_until_ns[1] = NOW_NS + 1;
    say("a replica is stalled");
    world.nodes[1].stalled_until_ns[1] = NOW_NS;
    say("a replica was stalled until now");
    world.quiet = true;
    say("it has begun");
    printf("}\n");
    return 0;
}
