/* The command line of explore (explore_main.c describes the options), and the plug-in that it may name. */
#ifndef LOCKSTORM_EXPLORER_EXPLORE_OPTIONS_H
#define LOCKSTORM_EXPLORER_EXPLORE_OPTIONS_H

#include "harness/explorer/search.h"

enum { STATUS_HOLDS = 0, STATUS_VIOLATED = 1, STATUS_BAD = 2, STATUS_INCONCLUSIVE = 3, STATUS_GAVE_UP = 4 };
enum { PATH_ROOM = 4096 };

struct explore_arguments {
    struct world_settings world;
    struct search_settings search;
    const char *directory, *shared, *digests, *replay;
    int64_t number;
    int clocks;
    char history[PATH_ROOM], sink[PATH_ROOM];
};

/* False: the command line is wrong; the reason is on standard error. Texts point into argv. */
bool explore_options_parse(int argc, char **argv, struct explore_arguments *arguments);
/* Ends the process with STATUS_GAVE_UP if the plug-in has written to a static variable. Without a plug-in: nothing. */
void explore_plugin_check(void);

#endif
