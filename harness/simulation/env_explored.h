/* The explored environment: what the lock's code of a task calls, and how its commands are executed. A task gives up
 * control wherever it waits; its commands reach real servers when the schedule lets them arrive. */
#pragma once

#include "harness/simulation/world_state.h"

/* Prepares a task's environment for a schedule. */
void explored_env_open(struct explored_task *task, struct world *world, int number, uint64_t seed);
void explored_env_close(struct explored_task *task);
/* The client is gone: its code runs to its end without answers, and what it records goes to the sink. */
void explored_client_abandon(struct explored_client *client);

/* Whether a task's code can resume. The arrival of its command is a step of its own, which this does not cover. */
bool explored_task_can_resume(const struct explored_task *task, int64_t now_ns);
/* Runs the task's code to its next command, sleep or wait. */
void explored_task_resume(struct explored_task *task);
/* Delays a command that has not left yet by `by_ns`, with its deadline, as if it were sent that much later. */
void explored_task_delay(struct explored_task *task, int64_t by_ns);
/* The task's command arrives at the node; `lost`: the reply does not come back. */
void explored_task_deliver(struct explored_task *task, bool lost);
/* The task's command arrives at a busy node, which answers with an error and executes nothing. */
void explored_task_refuse(struct explored_task *task);
/* A copy of the task's command becomes a late command. False: there are WORLD_LATE of them already. */
bool explored_task_duplicate(struct explored_task *task);
/* The task's connections to a node are lost. */
void explored_task_disconnect(struct explored_task *task, int node);

/* The client's connection to the resource (harness/client/client.h): `holder` is the client's worker. The
 * reply belongs to the worker until its next command. */
const struct env_reply *explored_resource_exchange(void *holder, const char *command, size_t length);
/* The store executes an encoded command. The caller frees the answer. */
redisReply *world_store_exchange(struct world *world, const char *command, size_t length);
/* Reads what has arrived on the connections to a node, for the tasks that wait there and for its replicas. */
void world_collect(struct world *world, int node);
/* The same after its clock has moved on, which sends nothing to who listens. */
void world_collect_in_time(struct world *world, int node);
