/* redis_commands: formats commands by harness/environment/redis_command.h and by hiredis, and compares the bytes.
 *
 * Prints one JSON line: {"same": N, "different": N}. Exit status: 0. */
#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/environment/redis_command.h"

static int same, different;

static void compare(const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t length = 0;
    char *ours = redis_command_format(NULL, 0, format, arguments, &length), *theirs = NULL;
    int expected = redisvFormatCommand(&theirs, format, again);
    va_end(again);
    va_end(arguments);
    bool equal = expected >= 0 && (size_t)expected == length && memcmp(ours, theirs, length) == 0;
    if (!equal) fprintf(stderr, "%s: %.*s instead of %s\n", format, (int)length, ours, theirs ? theirs : "nothing");
    same += equal;
    different += !equal;
    free(ours);
    redisFreeCommand(theirs);
}

int main(void) {
    static char long_text[5000];
    memset(long_text, 'x', sizeof long_text - 1);
    compare("PING");
    compare("SET key value");
    compare("SET %s %b NX PX %lld", "key", "a\0b\r\n", (size_t)5, 30000LL);
    compare("SET %s %b", "", "", (size_t)0);
    compare("SET %s %s", long_text, long_text);
    compare("EVAL %s %d %s %s", "return 1", 2, "one", "two words and\r\nlines");
    compare("EVALSHA %b %d %b", "0123456789", (size_t)10, INT_MIN, "x", (size_t)1);
    compare("INCRBY %s %d", "key", 0);
    compare("INCRBY %s %d", "key", -1);
    compare("INCRBY %s %u", "key", UINT_MAX);
    compare("INCRBY %s %lld", "key", LLONG_MIN);
    compare("INCRBY %s %lld", "key", LLONG_MAX);
    compare("SET prefix:%s value", "key"); /* from here on it is hiredis that formats */
    compare("SET  key   value");
    compare("SET key value ");
    compare("SET key 100%%");
    compare("PEXPIRE key %llu", 5ULL);
    compare("A B C D E F G H I J K L M N O P Q R S T U V W X Y Z %s", "more than the words that are counted");
    printf("{\"same\": %d, \"different\": %d}\n", same, different);
    return 0;
}
