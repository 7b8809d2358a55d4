/* For plug-ins of tests: what all lives of a client have in common, as a host's name. A lock cannot learn it from its
 * environment; the path of the client's first link has it. */
#pragma once

#include <stdio.h>
#include <string.h>

static inline unsigned long long host_name(void) {
    unsigned long long hash = 14695981039346656037u;
    char line[8192];
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t length = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file) fclose(file);
    line[length] = '\0';
    for (const char *word = line; word < line + length; word += strlen(word) + 1)
        for (const char *at = strncmp(word, "--node=", 7) == 0 ? word : ""; *at; at++)
            hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    return hash;
}
