/* Random numbers: all that a program can get from the kernel comes from the trial's seed. */
#include <errno.h>
#include <fcntl.h>
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
static void on_getrandom(struct supervisor *supervisor, struct program_process *process,
                         const struct seccomp_notif *call) {
    unsigned char bytes[AT_ONCE_MOST];
    uint64_t size = call_argument(call, 1);
    if (size > sizeof bytes) size = sizeof bytes;
    fill(&supervisor->random, bytes, size);
    call_answer_written(supervisor, process, call, call_argument(call, 0), bytes, size, (int64_t)size);
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

static void open_device(struct supervisor *supervisor, const struct seccomp_notif *call, uint64_t flags) {
    int fd = device_open(&supervisor->random);
    struct seccomp_notif_addfd addition = {.id = call->id,
                                           .flags = SECCOMP_ADDFD_FLAG_SEND,
                                           .srcfd = (uint32_t)fd,
                                           .newfd_flags = (uint32_t)(flags & O_CLOEXEC)};
    if (fd < 0 || ioctl(supervisor->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &addition) < 0)
        supervisor_give_up(supervisor, "the program's random device cannot be replaced: %s", strerror(errno));
    if (fd >= 0) close(fd);
}

static void on_open_path(struct supervisor *supervisor, struct program_process *process,
                         const struct seccomp_notif *call, uint64_t path, uint64_t flags) {
    char text[PATH_ROOM];
    bool whole = program_read_text(process, path, text, sizeof text);
    if (whole && (strcmp(text, "/dev/random") == 0 || strcmp(text, "/dev/urandom") == 0))
        open_device(supervisor, call, flags);
    else supervisor_pass(supervisor, call);
}

static void on_openat(struct supervisor *supervisor, struct program_process *process,
                      const struct seccomp_notif *call) {
    on_open_path(supervisor, process, call, call_argument(call, 1), call_argument(call, 2));
}

#ifdef SYS_open
static void on_open(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    on_open_path(supervisor, process, call, call_argument(call, 0), call_argument(call, 1));
}
#endif

const struct supervised_call CALLS_CHANCE[] = {
    {SYS_getrandom, on_getrandom, CALL_ALWAYS, 0},
    {SYS_openat, on_openat, CALL_ALWAYS, 0},
#ifdef SYS_open
    {SYS_open, on_open, CALL_ALWAYS, 0},
#endif
    {0},
};
