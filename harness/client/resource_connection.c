#include "harness/client/resource_connection.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

const struct env_reply *resource_exchange(const struct resource_connection *connection, const char *format, ...) {
    va_list arguments;
    char *command = NULL;
    va_start(arguments, format);
    int length = redisvFormatCommand(&command, format, arguments);
    va_end(arguments);
    if (length < 0) abort(); /* a format that a programmer got wrong, or no memory */
    const struct env_reply *reply = connection->exchange(connection->holder, command, (size_t)length);
    redisFreeCommand(command);
    return reply;
}
