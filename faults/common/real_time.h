/* Real time, for limits and polling: the machine's, whatever kind of time the trial has. */
#ifndef LOCKSTORM_FAULTS_REAL_TIME_H
#define LOCKSTORM_FAULTS_REAL_TIME_H

#include <stdint.h>

void real_time_sleep_us(long duration_us);

/* Of the monotonic clock. */
int64_t real_time_ms(void);

#endif
