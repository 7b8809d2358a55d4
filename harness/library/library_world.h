/* The world of one schedule of a library: programs that host it, real servers, the messages between them, and one
 * virtual time. It makes no choices itself (harness/search does).
 *
 * Everything that a program sends waits until the schedule lets it reach its server, and every answer until the
 * schedule lets it reach the program; a program runs only until it is quiet. Time passes only when nothing is under
 * way, up to the next moment at which somebody goes on. So the workload, the order of steps and the faults between them
 * determine everything that happens, as far as the library's program is deterministic.
 *
 * Programs outlive a schedule: starting one takes longer than most schedules. A *session* is a number of schedules with
 * the same programs, which begins with new ones. */
#pragma once

#include "harness/library/library_state.h"

extern const struct choice_space HOSTED_CHOICES;

/* Connects to the servers and asks the library what it offers. False with world->search.reason. */
bool library_world_open(struct library_world *world, const struct library_settings *settings);
void library_world_close(struct library_world *world);
/* Makes world->search of a world that has these settings and need not be open. Its properties are promises of
 * libraries; its places are the calls that struck clients were making. */
void library_search_make(struct library_world *world, const struct library_settings *settings);

/* Ends the programs: the next schedule begins a session. */
void library_session_end(struct library_world *world);

/* Operations of struct search_world. When a schedule has begun, servers are empty, the programs of the workload's
 * clients run and have made no call. Choices are of steps only, not of faults. */
bool library_begin(struct search_world *search, const struct workload *workload, uint64_t seed, uint64_t number);
int library_choices(struct search_world *search, struct choice *choices);
bool library_can_take(const struct library_world *world, struct choice step);
bool library_apply(struct search_world *search, struct choice choice);
/* Ends a schedule: what is under way arrives, time passes for as long as a lease and a renewal would last, and what is
 * left at the servers is noted. True: the programs can be used for another schedule. */
bool library_end(struct library_world *world);
