#include "harness/process/proc_file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool proc_read(char *text, size_t size, const char *format, ...) {
    char path[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got >= 0;
}

bool proc_number(const char *text, const char *name, int base, uint64_t *value) {
    const char *at = strstr(text, name);
    while (at && at != text && at[-1] != '\n') at = strstr(at + 1, name);
    if (at) *value = strtoull(at + strlen(name), NULL, base);
    return at != NULL;
}
