/* What the files of liblockstorm-preload.so share. */
#pragma once

/* Maps the clock page that the environment names; from then on it is the wall clock. Ends the process if it cannot. */
void preload_map_clock(void);
