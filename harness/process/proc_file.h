/* Files of /proc, which are short and are read at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the beginning of the file at the formatted path into `text`, zero-terminated. False: it cannot be read, as when
 * its process has ended. */
__attribute__((format(printf, 3, 4))) bool proc_read(char *text, size_t size, const char *format, ...);

/* The number behind this name, such as "Tgid:", at the beginning of one of the text's lines. False: no line has it. */
bool proc_number(const char *text, const char *name, int base, uint64_t *value);
