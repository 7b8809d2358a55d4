/* Random numbers: all that a program can get from the kernel comes from the trial's seed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/supervisor/calls.h"

enum { AT_ONCE_MOST = 4096, DEVICE_BYTES = 1 << 20, PATH_ROOM = 32 };

static void fill(struct random *random, unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = random_next(random);
        memcpy(bytes + at, &word, size - at < sizeof word ? size - at : sizeof word);
    }
}

/* getrandom may give fewer bytes than were asked for; more than 256 only when there are more. */
void on_getrandom(const struct program_call *call) {
    unsigned char bytes[AT_ONCE_MOST];
    uint64_t size = call->arguments[1];
    if (size > sizeof bytes) size = sizeof bytes;
    fill(&call->supervisor->random, bytes, size);
    call_answer_written(call, call->arguments[0], bytes, size, (int64_t)size);
}

/* A file in the place of the device; -1: none could be made. */
static int device_open(struct random *random) {
    static unsigned char bytes[DEVICE_BYTES];
    int fd = memfd_create("random", MFD_CLOEXEC);
    fill(random, bytes, sizeof bytes);
    if (fd >= 0 && pwrite(fd, bytes, sizeof bytes, 0) == sizeof bytes) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static void open_device(const struct program_call *call, uint64_t flags) {
    int fd = device_open(&call->supervisor->random);
    struct seccomp_notif_addfd addition = {.id = call->id,
                                           .flags = SECCOMP_ADDFD_FLAG_SEND,
                                           .srcfd = (uint32_t)fd,
                                           .newfd_flags = (uint32_t)(flags & O_CLOEXEC)};
    if (fd < 0 || ioctl(call->supervisor->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &addition) < 0)
        supervisor_give_up(call->supervisor, "the program's random device cannot be replaced: %s", strerror(errno));
    if (fd >= 0) close(fd);
}

/* openat, or open, which has no directory as its first argument. */
void on_open(const struct program_call *call) {
    const uint64_t *path = call->arguments + (call->number == SYS_openat);
    char text[PATH_ROOM];
    bool whole = program_read_text(call->process, path[0], text, sizeof text);
    if (whole && (strcmp(text, "/dev/random") == 0 || strcmp(text, "/dev/urandom") == 0)) open_device(call, path[1]);
    else supervisor_pass(call);
}
