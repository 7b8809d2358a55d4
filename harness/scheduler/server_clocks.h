/* The wall clocks of a trial's servers. Each is a file (preload/clock_page.h) that the server reads instead of the
 * machine's clock.
 *
 * In virtual time the file holds the time itself: as a number, which redis-server and ZooKeeper have mapped, and as a
 * line that libfaketime reads at every call of PostgreSQL's, with half a microsecond on top, because the fraction
 * passes through a double on its way and must not fall below the intended microsecond. In real time it holds how the
 * clock differs from the machine's, which a redis-server reads as this side does: there is nothing to measure.
 *
 * Servers are numbered from 0 in the order in which they are added. */
#pragma once

#include "harness/scheduler/shared_page.h"

struct server_clocks;

/* `page` stays the caller's and outlives the clocks. The caller frees with server_clocks_close. */
struct server_clocks *server_clocks_open(const struct shared_page *page);
void server_clocks_close(struct server_clocks *clocks);

/* Adds a server whose clock is the file at `path`, which is written at once; NULL: the machine's clock. Returns its
 * number, or -1 with *error. */
int server_clocks_add(struct server_clocks *clocks, const char *path, struct history_error *error);
/* Whether the server reads a file and not the machine's clock. */
bool server_clocks_has_file(const struct server_clocks *clocks, int server);
/* Writes the trial's present time into every file. False: one could not be written. */
bool server_clocks_write(const struct server_clocks *clocks);
