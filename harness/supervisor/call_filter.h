/* The filter by which the kernel hands over the calls of CALL_GROUPS and lets all others happen. */
#pragma once

/* Puts the calling process, and all that it starts, under the filter. The descriptor at which its calls are received,
 * or -1 with errno. Calls that are handed over wait where only a signal that kills can end the wait. */
int call_filter_install(void);
