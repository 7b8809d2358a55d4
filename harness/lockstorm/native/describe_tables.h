/* The tables of locks and faults as JSON, for the command line. The caller frees the strings with describe_free. */
#pragma once

char *describe_locks(void);
char *describe_zoo(void); /* the locks of the bug zoo, which no other list has */
char *describe_faults(void);
void describe_free(char *text);
