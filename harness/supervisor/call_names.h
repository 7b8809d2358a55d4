/* Names of the calls that may wait and that the supervisor does not answer. */
#pragma once

/* "another call" for one without a name here. */
const char *call_name(int number);
