/* A group of clients in one process: each hosts one lock over its own connections, as a client in a process of its own
 * does (harness/client/client_main.c), but as a coroutine. Its arguments are a client's, with these differences:
 *
 *   --actors FILE   the indexes of the clients' names, one a line
 *   --task N        the worker of the first client; the other tasks follow, two a client
 *   --turn-fd FD    says that the driver has changed a slot of any of these tasks
 *
 * Exit status: 2 bad arguments, or too few descriptors; 3 a node did not answer; 4 the plug-in cannot be used. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/client/live_client.h"
#include "harness/client_group/carrier.h"
#include "harness/process/descriptor_limit.h"
#include "harness/process/zygote_service.h"
#include "harness/scheduler/grown.h"

enum { TASKS_PER_CLIENT = 2 };

struct client_group;

struct group_member {
    struct client_group *group;
    struct client_arguments arguments;
};

struct client_group {
    struct carrier carrier;
    const struct lock_type *type;
    struct actor files;
    struct group_member *members;
    int count;
};

static void member_run(void *argument) {
    const struct group_member *member = argument;
    const struct client_group *group = member->group;
    struct task_carrier *carrier = &member->group->carrier.tasks;
    if (live_client_run(&member->arguments, group->type, &group->files, carrier) != OUTCOME_OK)
        exit(LIVE_CLIENT_NOT_OPENED);
}

/* Reads the members' actors; false: the file cannot be read, or holds something else. */
static bool members_read(struct client_group *group, const struct client_arguments *arguments) {
    FILE *file = fopen(arguments->actors, "re");
    size_t room = 0;
    int64_t actor;
    int got;
    while (file && (got = fscanf(file, "%" SCNd64, &actor)) == 1) {
        group->members = grown(group->members, (size_t)group->count + 1, &room, sizeof *group->members);
        struct group_member *member = &group->members[group->count];
        *member = (struct group_member){.arguments = *arguments};
        member->arguments.actor = actor;
        member->arguments.task += TASKS_PER_CLIENT * group->count++;
    }
    if (file) fclose(file);
    return file && got == EOF && group->count > 0;
}

static bool group_open(struct client_group *group, const struct client_arguments *arguments) {
    struct history_error error = {.text = "unknown lock, task or clients"};
    group->type = client_arguments_lock(arguments);
    bool known = actor_open(&group->files, 0, arguments->history, arguments->page, &error) && group->type &&
                 arguments->actors && members_read(group, arguments);
    int tasks = TASKS_PER_CLIENT * group->count;
    if (!known || arguments->task < 0 || arguments->task > (int64_t)group->files.page->task_count - tasks) {
        fprintf(stderr, "client: %s\n", error.text);
        return false;
    }
    const struct task_slot *first = &group->files.page->tasks[arguments->task];
    if (carrier_open(&group->carrier, first, tasks, (int)arguments->turn_fd)) return true;
    fprintf(stderr, "client: %s\n", strerror(errno));
    return false;
}

int main(int argc, char **argv) {
    struct client_arguments arguments = {.task = -1, .permits = 1, .env = {.reply_limit_ms = 1000}};
    struct client_group group = {0};
    zygote_begin(&argc, &argv);
    if (!client_arguments_parse(argc, argv, &arguments)) return 2;
    descriptor_limit_raise(); /* the driver has checked that this is enough */
    if (!group_open(&group, &arguments)) return 2;
    for (int each = 0; each < group.count; each++) {
        struct group_member *member = &group.members[each];
        member->group = &group;
        carrier_add(&group.carrier, &group.files.page->tasks[member->arguments.task], member_run, member);
    }
    if (!carrier_run(&group.carrier)) {
        fprintf(stderr, "client: %s\n", strerror(errno));
        return 1;
    }
    carrier_close(&group.carrier);
    actor_close(&group.files);
    free(group.members);
    free(arguments.resource);
    return 0;
}
