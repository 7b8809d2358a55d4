#include "harness/process/zygote_service.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/process/spawn.h"

enum { REQUEST_BYTES = 1 << 16, WORDS = 256, DESCRIPTORS = 1 + ZYGOTE_KEPT };

struct request {
    char text[REQUEST_BYTES];
    size_t size;
    int descriptors[DESCRIPTORS]; /* the one for the output, then those that the child keeps */
    int descriptor_count;
};

/* The words of the zygote, and the place for those of its children. */
struct own_words {
    char **words;
    int count;
    char *room;
    size_t room_size;
};

static void descriptors_close(struct request *request) {
    for (int each = 0; each < request->descriptor_count; each++) close(request->descriptors[each]);
    request->descriptor_count = 0;
}

/* False: no request will come any more. */
static bool request_receive(int socket, struct request *request) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
    struct iovec part = {.iov_base = request->text, .iov_len = REQUEST_BYTES - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t size;
    do size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    const struct cmsghdr *sent = CMSG_FIRSTHDR(&message);
    if (size <= 0 || !sent || sent->cmsg_type != SCM_RIGHTS) return false;
    size_t bytes = sent->cmsg_len - CMSG_LEN(0);
    memcpy(request->descriptors, CMSG_DATA(sent), bytes);
    request->descriptor_count = (int)(bytes / sizeof(int));
    request->size = (size_t)size;
    request->text[size] = 0;
    return true;
}

/* The child may run on the processors on which the driver may. */
static void processors_inherit(pid_t parent) {
    cpu_set_t allowed;
    if (sched_getaffinity(parent, sizeof allowed, &allowed) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

/* Gives the descriptors the numbers that they have in the driver, without the flag that closes them at exec. They first
 * move behind all these numbers, for one may have the number that is another's. */
static bool descriptors_place(struct request *request, const int numbers[DESCRIPTORS]) {
    int behind = STDERR_FILENO;
    bool placed = true;
    for (int each = 0; each < request->descriptor_count; each++)
        if (numbers[each] > behind) behind = numbers[each];
    for (int each = 0; each < request->descriptor_count; each++) {
        int moved = fcntl(request->descriptors[each], F_DUPFD_CLOEXEC, behind + 1);
        close(request->descriptors[each]);
        request->descriptors[each] = moved;
    }
    for (int each = 0; each < request->descriptor_count; each++)
        placed = placed && dup2(request->descriptors[each], numbers[each]) >= 0;
    descriptors_close(request);
    return placed && dup2(STDOUT_FILENO, STDERR_FILENO) >= 0;
}

static char *text_after(char *text) {
    return text + strlen(text) + 1;
}

/* Runs in the child, and makes it what the request asks for. The request stays where it is: the environment points into
 * it. Returns the number of the child's words. */
static int child_begin(struct request *request, const struct own_words *own, char ***words, pid_t parent) {
    int numbers[DESCRIPTORS] = {STDOUT_FILENO};
    char *head = request->text, *first = text_after(request->text), *variables = first;
    long count = own->count + strtol(head, &head, 10);
    bool near = strtol(head, &head, 10) != 0;
    for (int each = 1; each < request->descriptor_count; each++) numbers[each] = (int)strtol(head, &head, 10);
    char **all = count > WORDS ? NULL : calloc((size_t)count + 1, sizeof *all);
    if (!all || !spawn_bind(parent, near) || !descriptors_place(request, numbers)) _exit(127);
    processors_inherit(parent);
    for (long each = own->count; each < count; each++) variables = text_after(variables);
    size_t size = (size_t)(variables - first);
    char *place = size <= own->room_size ? memcpy(own->room, first, size) : first;
    for (int each = 0; each < own->count; each++) all[each] = own->words[each];
    for (long each = own->count; each < count; each++, place = text_after(place)) all[each] = place;
    for (; variables < request->text + request->size; variables = text_after(variables)) putenv(variables);
    *words = all;
    return (int)count;
}

/* Makes a child of this process's parent, not of this process. The C library's fork cannot do that; what fork does
 * besides concerns other threads and their locks; a zygote has none. The library goes on using the zygote's
 * thread id for the child's. No other thread has that id while the zygote lives, and the child lives no longer. */
static pid_t sibling_make(void) {
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
}

/* Returns in each child. */
static void serve(int socket, struct request *request, pid_t *child) {
    while (request_receive(socket, request)) {
        *child = sibling_make();
        if (*child == 0) break;
        int32_t answer = *child < 0 ? -errno : *child;
        descriptors_close(request);
        if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) _exit(0);
    }
    if (*child != 0) _exit(0);
    close(socket);
}

void zygote_begin(int *count, char ***words) {
    static struct request request;
    const char *socket = getenv(ZYGOTE_VARIABLE);
    if (!socket || *count < 2) return;
    char *room = (*words)[*count - 1];
    struct own_words own = {.words = *words, .count = *count - 1, .room = room, .room_size = strlen(room)};
    int number = atoi(socket);
    pid_t parent = getppid(), child = -1;
    unsetenv(ZYGOTE_VARIABLE); /* if this is a script, the program that it runs is no zygote */
    memset(own.room, 0, own.room_size);
    serve(number, &request, &child);
    *count = child_begin(&request, &own, words, parent);
}
