/* Names of the calls that may wait and that the supervisor does not answer. */
#ifndef LOCKSTORM_CALL_NAMES_H
#define LOCKSTORM_CALL_NAMES_H

/* "another call" for one without a name here. */
const char *call_name(int number);

#endif
