/* Connections: a port of the loopback interface may lead to another one (struct supervisor_route). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/supervisor/calls.h"

union internet_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

/* The place of the port in an address of the loopback interface, of IPv4 or of IPv4 within IPv6; NULL: it is another.
 */
static in_port_t *loopback_port(union internet_address *address, size_t length) {
    static const struct in6_addr MAPPED = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    bool is_four = length >= sizeof address->four && address->any.sa_family == AF_INET;
    bool is_six = length >= sizeof address->six && address->any.sa_family == AF_INET6;
    if (is_four && address->four.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) return &address->four.sin_port;
    if (is_six && memcmp(&address->six.sin6_addr, &MAPPED, sizeof MAPPED) == 0) return &address->six.sin6_port;
    return NULL;
}

/* The port that connections to this one lead to; 0: none does. */
static uint16_t route_from(const struct supervisor *supervisor, uint16_t port) {
    for (int each = 0; each < supervisor->route_count; each++)
        if (supervisor->routes[each].from == port) return supervisor->routes[each].to;
    return 0;
}

/* Connects the program's socket by a duplicate of it: the program's own copy of the address stays as it is. */
static void connect_for(const struct program_call *call, const union internet_address *address, socklen_t length) {
    int fd = program_duplicate_fd(call->process, (int)call->arguments[0]);
    int error = fd < 0 || connect(fd, &address->any, length) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    if (error) supervisor_refuse(call, error);
    else supervisor_answer(call, 0);
}

void on_connect(const struct program_call *call) {
    union internet_address address;
    size_t length = (size_t)call->arguments[2];
    bool fits = call->supervisor->route_count > 0 && length >= sizeof address.four && length <= sizeof address;
    in_port_t *port = NULL;
    if (fits && program_read(call->process, call->arguments[1], &address, length))
        port = loopback_port(&address, length);
    uint16_t to = port ? route_from(call->supervisor, ntohs(*port)) : 0;
    if (!to) {
        supervisor_pass(call);
        return;
    }
    *port = htons(to);
    connect_for(call, &address, (socklen_t)length);
}
