/* PostgreSQL's shared memory, a segment of System V, which stays behind when the server is killed. */
#pragma once

#define POSTGRES_PID_FILE "postmaster.pid"

/* Removes the segment of the server whose data directory has this file. Only a segment that the server has made is
 * removed; without one, or without the file, nothing happens. */
void postgres_memory_remove(const char *pid_file);
