/* What the parts of liblockstorm-preload.so know of each other. */
#ifndef LOCKSTORM_PRELOAD_PRELOAD_H
#define LOCKSTORM_PRELOAD_PRELOAD_H

/* In the environment of a zygote: the number of the socket on which it hears what to start (zygote.c). */
#define ZYGOTE_VARIABLE "LOCKSTORM_ZYGOTE"

/* Maps the page that the environment names; from then on it is the wall clock. Ends the process if it cannot. */
void preload_map_clock(void);

#endif
