#include "harness/process/postgres_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/shm.h>

enum { SEGMENT_LINE = 7 };

/* The file has the server's process id in its first line, and the segment's number behind the key in its seventh. */
void postgres_memory_remove(const char *pid_file) {
    char line[256] = "";
    long creator = 0;
    int segment = -1;
    struct shmid_ds about;
    FILE *file = fopen(pid_file, "re");
    if (!file) return;
    for (int number = 1; number <= SEGMENT_LINE && fgets(line, sizeof line, file); number++)
        if (number == 1) creator = atol(line);
    if (sscanf(line, "%*u %d", &segment) == 1 && shmctl(segment, IPC_STAT, &about) == 0 && about.shm_cpid == creator)
        shmctl(segment, IPC_RMID, NULL);
    fclose(file);
}
