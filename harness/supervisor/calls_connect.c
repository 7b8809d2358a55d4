/* Connections: a port of the loopback interface may lead to another one (struct supervisor_route), and a closed program
 * reaches nothing else but itself. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/supervisor/calls.h"

union internet_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_un local;
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

/* --- a closed program --- */

static uint16_t internet_port(const union internet_address *address) {
    return ntohs(address->any.sa_family == AF_INET ? address->four.sin_port : address->six.sin6_port);
}

static bool is_internet(const union internet_address *address, size_t length) {
    return (address->any.sa_family == AF_INET && length >= sizeof address->four) ||
           (address->any.sa_family == AF_INET6 && length >= sizeof address->six);
}

/* The sockets of the machine's services, and PostgreSQL's wherever it is. */
static bool is_service_socket(const union internet_address *address) {
    const char *path = address->local.sun_path;
    return address->any.sa_family == AF_UNIX &&
           (strncmp(path, "/run/", 5) == 0 || strncmp(path, "/var/run/", 9) == 0 || strstr(path, "/.s.PGSQL."));
}

static bool is_own_machine(union internet_address *address, size_t length) {
    bool is_six = address->any.sa_family == AF_INET6;
    return loopback_port(address, length) || (is_six && IN6_IS_ADDR_LOOPBACK(&address->six.sin6_addr));
}

/* Port 0 of a datagram socket is how the C library asks which of its addresses it would use. */
static bool may_connect(const struct supervisor *supervisor, union internet_address *address, size_t length) {
    if (!is_internet(address, length)) return !is_service_socket(address);
    uint16_t port = internet_port(address);
    for (int each = 0; each < supervisor->listen_count; each++)
        if (supervisor->listens[each] == port) return is_own_machine(address, length);
    return port == 0;
}

/* Not of what it asks only on its way: the C library a daemon for names, and for one that has two addresses both. */
static void stranger_note(struct supervisor *supervisor, const union internet_address *address) {
    char host[INET6_ADDRSTRLEN] = "";
    if (supervisor->stranger[0] ||
        (is_internet(address, sizeof *address) && route_from(supervisor, internet_port(address))))
        return;
    if (address->any.sa_family == AF_UNIX) {
        if (!strstr(address->local.sun_path, "/nscd/"))
            snprintf(supervisor->stranger, sizeof supervisor->stranger, "%.100s", address->local.sun_path);
        return;
    }
    bool is_four = address->any.sa_family == AF_INET;
    inet_ntop(address->any.sa_family, is_four ? (const void *)&address->four.sin_addr : &address->six.sin6_addr, host,
              sizeof host);
    snprintf(supervisor->stranger, sizeof supervisor->stranger, is_four ? "%s:%d" : "[%s]:%d", host,
             internet_port(address));
}

void on_connect(const struct program_call *call) {
    struct supervisor *supervisor = call->supervisor;
    union internet_address address = {0};
    /* The kernel takes longer ones, too: many programs name the size of a sockaddr_storage. The last byte stays NUL. */
    uint64_t named = call->arguments[2];
    size_t length = named < sizeof address ? (size_t)named : sizeof address - 1;
    bool matters = supervisor->route_count > 0 || supervisor->is_closed;
    in_port_t *port = NULL;
    if (!matters || length < sizeof address.any.sa_family ||
        !program_read(call->process, call->arguments[1], &address, length)) {
        supervisor_pass(call);
        return;
    }
    port = loopback_port(&address, length);
    uint16_t to = port ? route_from(supervisor, ntohs(*port)) : 0;
    if (to) {
        *port = htons(to);
        connect_for(call, &address, (socklen_t)length);
    } else if (!supervisor->is_closed || may_connect(supervisor, &address, length)) {
        supervisor_pass(call);
    } else {
        stranger_note(supervisor, &address);
        supervisor_refuse(call, ECONNREFUSED);
    }
}

/* The port of a socket that was not bound is chosen in this call, and is not noted. */
void on_listen(const struct program_call *call) {
    struct supervisor *supervisor = call->supervisor;
    union internet_address address = {0};
    socklen_t length = sizeof address;
    int fd = supervisor->is_closed ? program_duplicate_fd(call->process, (int)call->arguments[0]) : -1;
    bool has_port = fd >= 0 && getsockname(fd, &address.any, &length) == 0 && is_internet(&address, length);
    if (has_port && supervisor->listen_count < SUPERVISOR_LISTENS)
        supervisor->listens[supervisor->listen_count++] = internet_port(&address);
    if (fd >= 0) close(fd);
    supervisor_pass(call);
}
