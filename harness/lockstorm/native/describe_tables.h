/* The tables of locks and faults as JSON, for the command line. The caller frees the strings with describe_free. */
#ifndef LOCKSTORM_DESCRIBE_TABLES_H
#define LOCKSTORM_DESCRIBE_TABLES_H

char *describe_locks(void);
char *describe_zoo(void); /* the locks of the bug zoo, which no other list has */
char *describe_faults(void);
void describe_free(char *text);

#endif
