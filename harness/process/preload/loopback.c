/* liblockstorm-loopback.so: a server that would listen on every interface listens on the loopback interface only.
 * ZooKeeper keeps its peers to their own way to it only if it gives every interface as its address
 * (lockstorm/trial/zookeeper_nodes.py); the network has no business there. Decision 0046. */
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

typedef int (*bind_function)(int, const struct sockaddr *, socklen_t);

/* The loopback address of IPv4 on a socket of IPv6. */
static const struct in6_addr loopback_mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

int bind(int fd, const struct sockaddr *address, socklen_t length) {
    static bind_function real;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "bind");
    struct sockaddr_in narrow;
    struct sockaddr_in6 wide;
    if (length == sizeof narrow && address->sa_family == AF_INET) {
        memcpy(&narrow, address, sizeof narrow);
        if (narrow.sin_addr.s_addr == htonl(INADDR_ANY)) narrow.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return real(fd, (const struct sockaddr *)&narrow, length);
    }
    if (length == sizeof wide && address->sa_family == AF_INET6) {
        memcpy(&wide, address, sizeof wide);
        if (IN6_IS_ADDR_UNSPECIFIED(&wide.sin6_addr)) wide.sin6_addr = loopback_mapped;
        return real(fd, (const struct sockaddr *)&wide, length);
    }
    return real(fd, address, length);
}
