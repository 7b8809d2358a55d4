#include "harness/client/resource_connection.h"

#include <stdlib.h>

#include "harness/environment/redis_command.h"

const struct env_reply *resource_exchange(const struct resource_connection *connection, const char *format, ...) {
    va_list arguments;
    size_t length;
    va_start(arguments, format);
    char *command = redis_command_format(format, arguments, &length);
    va_end(arguments);
    const struct env_reply *reply = connection->exchange(connection->holder, command, length);
    free(command);
    return reply;
}
