/* The command line of explore (the table in explore_options.c describes the options), and the plug-in that it may
 * name. */
#pragma once

#include "harness/application/application.h"
#include "harness/library/library_world.h"
#include "harness/search/search.h"
#include "harness/simulation/world.h"

enum { STATUS_HOLDS = 0, STATUS_VIOLATED = 1, STATUS_BAD = 2, STATUS_INCONCLUSIVE = 3, STATUS_GAVE_UP = 4 };
enum { PATH_ROOM = 4096, OPTION_LIST = 32 };

struct option_list {
    const char *of[OPTION_LIST];
    int count;
};

struct explore_arguments {
    struct world_settings lock;      /* of a C lock, or: */
    struct library_settings adapter; /* of hosted programs, if adapter.program or app is set */
    const char *app;                 /* the file that says what the application is */
    struct search_settings search;
    char *require, *require_steady;                               /* lists of names */
    struct option_list faults, rare_faults, forms, nodes, clocks; /* in the order in which they are given */
    int port_count;
    const struct server_kind *service; /* of the nodes that follow */
    int64_t lease_ms;                  /* 0: the world's usual one */
    int permits;                       /* 0: the world's usual number */
    const char *directory, *shared, *digests, *replay;
    int64_t number;
    bool hello;
    char history[PATH_ROOM], sink[PATH_ROOM];
};

/* Reads the words; after it, what only a world knows, the names of faults and properties; and sees at last whether all
 * is there. False: the command line is wrong; the reason is on standard error. Texts point into argv. */
bool explore_options_parse(int argc, char **argv, struct explore_arguments *arguments);
bool explore_names_read(struct explore_arguments *arguments, const struct search_world *world);
bool explore_options_whole(struct explore_arguments *arguments);
/* Ends the process with STATUS_GAVE_UP if the plug-in has written to a static variable. Without a plug-in: nothing. */
void explore_plugin_check(void);
