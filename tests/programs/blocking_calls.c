/* One call that waits for what only another process does, later, or does not do at all. Argument: which. */
#include <aio.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/stamps.h"

/* A child that does this, sleeps, and ends, which gives free what it holds. */
static void beside(void (*action)(int), int fd) {
    int ready[2];
    char byte;
    if (pipe(ready) != 0) abort();
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (action) action(fd);
        if (write(ready[1], "x", 1) != 1) abort();
        sleep(5);
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1) abort();
}

static int own_file(void) {
    char path[] = "/tmp/blocking-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    return fd;
}

static struct flock whole_file(void) {
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

static void lock_with_flock(int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (flock(open(path, O_RDWR), LOCK_EX) != 0) abort();
}

static void lock_with_fcntl(int fd) {
    struct flock lock = whole_file();
    if (fcntl(fd, F_SETLK, &lock) != 0) abort();
}

static int64_t call_flock(void) {
    int fd = own_file();
    beside(lock_with_flock, fd);
    return result_of(flock(fd, LOCK_EX));
}

static int64_t call_fcntl(void) {
    int fd = own_file();
    struct flock lock = whole_file();
    beside(lock_with_fcntl, fd);
    return result_of(fcntl(fd, F_SETLKW, &lock));
}

static int64_t call_fcntl_of_description(void) {
    int fd = own_file();
    struct flock lock = whole_file();
    beside(lock_with_fcntl, fd);
    return result_of(fcntl(fd, F_OFD_SETLKW, &lock));
}

static int64_t call_msgrcv(void) {
    struct {
        long type;
        char text[8];
    } message;
    int queue = msgget(IPC_PRIVATE, 0600);
    beside(NULL, queue);
    msgctl(queue, IPC_STAT, &(struct msqid_ds){0});
    return result_of(msgrcv(queue, &message, sizeof message.text, 0, 0));
}

static int64_t call_semop(void) {
    int semaphores = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf down = {.sem_op = -1};
    beside(NULL, semaphores);
    return result_of(semop(semaphores, &down, 1));
}

static int64_t call_semtimedop(void) {
    int semaphores = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf down = {.sem_op = -1};
    return result_of(semtimedop(semaphores, &down, 1, &(struct timespec){3600, 0}));
}

static mqd_t own_queue(void) {
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[64];
    snprintf(name, sizeof name, "/blocking-%d", getpid());
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
    mq_unlink(name);
    return queue;
}

static int64_t call_mq_receive(void) {
    char text[8];
    return result_of(mq_receive(own_queue(), text, sizeof text, NULL));
}

static int64_t call_mq_timedreceive(void) {
    char text[8];
    struct timespec until = deadline_of_ms(CLOCK_REALTIME, 3600000);
    return result_of(mq_timedreceive(own_queue(), text, sizeof text, NULL, &until));
}

static int64_t call_open_fifo(void) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/blocking-fifo-%d", getpid());
    if (mkfifo(path, 0600) != 0) abort();
    int place = open(path, O_PATH);
    unlink(path); /* who is killed in the call leaves nothing */
    snprintf(path, sizeof path, "/proc/self/fd/%d", place);
    if (fork() == 0) {
        sleep(5);
        _exit(open(path, O_WRONLY | O_NONBLOCK) < 0);
    }
    return open(path, O_RDONLY) >= 0 ? 0 : -errno;
}

static int64_t call_connect(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "blocking-%d", getpid());
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(server, (struct sockaddr *)&address, sizeof address) != 0 || listen(server, 0) != 0) abort();
    int64_t result = 0;
    for (int each = 0; each < 3 && result == 0; each++)
        result = result_of(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
    return result;
}

static int64_t call_write(void) {
    static char bytes[1 << 20];
    int fds[2];
    if (pipe(fds) != 0) abort();
    return result_of(write(fds[1], bytes, sizeof bytes));
}

static int64_t call_send(void) {
    static char bytes[1 << 22];
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) abort();
    return result_of(send(sockets[0], bytes, sizeof bytes, 0));
}

static void send_parts(int fd) {
    if (fork() != 0) return;
    for (int part = 0; part < 3; part++) {
        if (write(fd, "abcd", 4) != 4) abort();
        sleep(1);
    }
    _exit(0);
}

static int64_t call_recv_waitall(void) {
    char bytes[12];
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) abort();
    beside(send_parts, sockets[1]);
    return result_of(recv(sockets[0], bytes, sizeof bytes, MSG_WAITALL));
}

static int64_t call_signalfd(void) {
    sigset_t set;
    struct signalfd_siginfo information;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, 0);
    alarm(3);
    return read(fd, &information, sizeof information) == sizeof information ? (int64_t)information.ssi_signo : -errno;
}

static int64_t call_io_uring(void) {
    char parameters[120] = {0};
    return result_of(syscall(SYS_io_uring_setup, 8, parameters));
}

static int64_t call_preadv(void) {
    char bytes[4];
    struct iovec content = {bytes, sizeof bytes};
    int fds[2];
    if (pipe(fds) != 0) abort();
    return result_of(preadv2(fds[0], &content, 1, -1, 0));
}

static int64_t call_splice(void) {
    int fds[2], others[2];
    if (pipe(fds) != 0 || pipe(others) != 0) abort();
    return result_of(splice(fds[0], NULL, others[1], NULL, 10, 0));
}

static int64_t call_sigwaitinfo(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pid_t parent = getpid();
    if (fork() == 0) {
        sleep(4);
        kill(parent, SIGUSR1);
        _exit(0);
    }
    return result_of(sigwaitinfo(&set, NULL));
}

static int64_t call_compute(void) {
    volatile uint64_t sum = 0;
    struct timespec until = deadline_of_ms(CLOCK_MONOTONIC, 3);
    while (clock_ns(CLOCK_MONOTONIC) < until.tv_sec * NS_PER_S + until.tv_nsec) sum = sum + 1;
    return sum > 0;
}

static int64_t call_nothing(void) {
    volatile uint64_t sum = 1;
    while (sum > 0) sum = sum + 2;
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int64_t (*run)(void);
    } CALLS[] = {
        {"flock", call_flock},
        {"fcntl", call_fcntl},
        {"fcntl-ofd", call_fcntl_of_description},
        {"msgrcv", call_msgrcv},
        {"semop", call_semop},
        {"semtimedop", call_semtimedop},
        {"mq_receive", call_mq_receive},
        {"mq_timedreceive", call_mq_timedreceive},
        {"open-fifo", call_open_fifo},
        {"connect", call_connect},
        {"write", call_write},
        {"send", call_send},
        {"recv-waitall", call_recv_waitall},
        {"signalfd", call_signalfd},
        {"io_uring", call_io_uring},
        {"preadv2", call_preadv},
        {"splice", call_splice},
        {"sigwaitinfo", call_sigwaitinfo},
        {"compute", call_compute},
        {"nothing", call_nothing},
    };
    show("start", 0);
    for (size_t each = 0; each < sizeof CALLS / sizeof CALLS[0]; each++) {
        if (argc != 2 || strcmp(argv[1], CALLS[each].name) != 0) continue;
        int64_t result = CALLS[each].run();
        show(argv[1], result);
        return 0;
    }
    fprintf(stderr, "usage: blocking_calls NAME\n");
    return 2;
}
