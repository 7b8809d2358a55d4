/* Makes random calls that the supervisor handles, with random arguments: addresses of nothing, of memory that other
 * threads change and unmap meanwhile, huge counts, descriptors that are not open; starts threads, processes and
 * programs, and kills some, at random moments. Arguments: a seed, a number of calls of each thread.
 *
 * A wait without an end ends with the program, by its alarm. The last line tells that a page which nobody was allowed
 * to touch, between pages of arguments, is as it was. */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/stamps.h"

enum { THREADS = 3, PAGES = 8, PAGE = 4096, DESCRIPTORS = 32, GUARD = 0x5a, END_S = 1000 };

static unsigned char *memory; /* even pages: arguments; odd ones: nobody's */
static int calls;
static _Thread_local unsigned state;

static unsigned chance(unsigned below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static unsigned char *some_place(void) {
    return memory + chance(PAGES / 2) * 2 * PAGE + (chance(2) ? chance(PAGE) / 8 * 8 : PAGE - chance(64));
}

/* Small numbers, sizes, descriptors, addresses of all kinds. */
static uint64_t some_argument(void) {
    static const uint64_t EDGES[] = {0,        1,    0x7fffffff, 0x80000000,        0xffffffff,        0x100000001,
                                     1u << 16, 1025, UINT64_MAX, (uint64_t)1 << 47, UINT64_MAX - 4095, 8,
                                     1024};
    switch (chance(8)) {
    case 0: return EDGES[chance(sizeof EDGES / sizeof EDGES[0])];
    case 1: return chance(DESCRIPTORS);
    case 2: return chance(16);
    case 3: return (uint64_t)getpid();
    default: return (uint64_t)(uintptr_t)some_place();
    }
}

/* Times that soon end among what lies in memory, since a wait without an end ends the program. */
static void fill_place(unsigned char *place) {
    switch (chance(4)) {
    case 0: memcpy(place, &(struct timespec){0, chance(1000000)}, sizeof(struct timespec)); break;
    case 1: memcpy(place, &(struct pollfd){(int)chance(DESCRIPTORS), POLLIN, 0}, sizeof(struct pollfd)); break;
    case 2: memset(place, (int)chance(3), 16); break;
    default: memcpy(place, &(uint64_t[2]){some_argument(), some_argument()}, 16); break;
    }
}

static void scribble(void) {
    unsigned char *place = some_place();
    if ((uintptr_t)place % PAGE <= PAGE - 16) fill_place(place);
}

/* Number of the call, and which of its arguments (a bit each) stay as they are here. */
static const struct {
    int number;
    unsigned fixed;
    uint64_t arguments[6];
} CALLS[] = {
    {SYS_clock_gettime, 0, {0}},
    {SYS_gettimeofday, 0, {0}},
    {SYS_time, 0, {0}},
    {SYS_times, 0, {0}},
    {SYS_sysinfo, 0, {0}},
    {SYS_nanosleep, 0, {0}},
    {SYS_clock_nanosleep, 2, {0, 0}},
    {SYS_futex, 2, {0, FUTEX_WAIT}},
    {SYS_futex, 2, {0, FUTEX_WAKE}},
    {SYS_futex, 2, {0, FUTEX_WAIT_BITSET}},
    {SYS_futex, 2, {0, FUTEX_CMP_REQUEUE}},
    {SYS_futex, 2, {0, FUTEX_WAKE_OP}},
    {SYS_futex, 2, {0, FUTEX_TRYLOCK_PI}},
    {SYS_futex, 2, {0, FUTEX_UNLOCK_PI}},
    {SYS_futex, 0, {0}},
    {SYS_epoll_wait, 8, {0, 0, 0, 1}},
    {SYS_epoll_pwait, 24, {0, 0, 0, 2, 0}},
    {SYS_epoll_pwait2, 0, {0}},
    {SYS_epoll_ctl, 0, {0}},
    {SYS_poll, 4, {0, 0, 1}},
    {SYS_ppoll, 8, {0}},
    {SYS_select, 0, {0}},
    {SYS_pselect6, 32, {0}},
    {SYS_read, 0, {0}},
    {SYS_readv, 0, {0}},
    {SYS_recvfrom, 8, {0, 0, 0, MSG_DONTWAIT}},
    {SYS_recvmsg, 4, {0, 0, MSG_DONTWAIT}},
    {SYS_accept4, 0, {0}},
    {SYS_timerfd_settime, 2, {0}},
    {SYS_timerfd_gettime, 0, {0}},
    {SYS_timer_create, 1, {1}},
    {SYS_timer_gettime, 0, {0}},
    {SYS_timer_delete, 0, {0}},
    {SYS_getitimer, 0, {0}},
    {SYS_setitimer, 1, {ITIMER_VIRTUAL}},
    {SYS_getrandom, 0, {0}},
    {SYS_openat, 5, {(uint64_t)AT_FDCWD, 0, O_RDONLY | O_NONBLOCK | O_CLOEXEC}},
    {SYS_open, 2, {0, O_RDONLY | O_NONBLOCK | O_CLOEXEC}},
    {SYS_execve, 0, {0}},
    {SYS_execveat, 0, {0}},
    {SYS_wait4, 5, {(uint64_t)-1, 0, WNOHANG}},
    {SYS_waitid, 8, {0, 0, 0, WEXITED | WNOHANG}},
    {SYS_kill, 2, {0, 0}},
    {SYS_tgkill, 4, {0, 0, SIGUSR1}},
    {SYS_tkill, 2, {0, SIGUSR1}},
    {SYS_rt_sigtimedwait, 8, {0, 0, 0, 8}},
    {SYS_sched_yield, 0, {0}},
    {SYS_clone3, 0, {0}},
    {SYS_rt_sigqueueinfo, 2, {0, 0}},
    {SYS_adjtimex, 0, {0}},
    {SYS_io_uring_setup, 0, {0}},
    {SYS_set_robust_list, 1, {0}},
};

/* Not to standard input and output, nor to processes of somebody else. */
static bool is_harmless(int number, const uint64_t *arguments) {
    if (number == SYS_kill || number == SYS_tkill || number == SYS_tgkill || number == SYS_rt_sigqueueinfo)
        return (pid_t)arguments[0] == getpid();
    if (number == SYS_clone3) return arguments[1] < 64;
    return true;
}

static void call_some(void) {
    uint64_t arguments[6];
    unsigned which = chance(sizeof CALLS / sizeof CALLS[0]);
    for (unsigned each = 0; each < 6; each++)
        arguments[each] = CALLS[which].fixed >> each & 1 ? CALLS[which].arguments[each] : some_argument();
    if (!is_harmless(CALLS[which].number, arguments)) return;
    syscall(CALLS[which].number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

/* --- what goes on beside it --- */

static void *end_soon(void *seed) {
    state = *(unsigned *)seed;
    if (chance(2)) sched_yield();
    if (chance(2)) usleep(chance(1000));
    return NULL;
}

static void start_some(void) {
    pthread_t thread;
    unsigned seed = state;
    int status;
    pid_t child;
    switch (chance(6)) {
    case 0:
        if (pthread_create(&thread, NULL, end_soon, &seed) == 0) pthread_join(thread, NULL);
        break;
    case 1:
        child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(END_S / 2);
            for (int each = 0; each < 5; each++) call_some();
            _exit(0);
        }
        if (child > 0 && chance(2)) kill(child, SIGKILL);
        if (child > 0) waitpid(child, &status, 0);
        break;
    case 2:
        child = vfork();
        if (child == 0) {
            if (seed % 2) execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        if (child > 0) waitpid(child, &status, 0);
        break;
    case 3:
        mprotect(memory + chance(PAGES / 2) * 2 * PAGE, PAGE, chance(2) ? PROT_READ : PROT_READ | PROT_WRITE);
        break;
    case 4:
        mmap(memory + chance(PAGES / 2) * 2 * PAGE, PAGE, chance(4) ? PROT_READ | PROT_WRITE : PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        break;
    default: close(3 + (int)chance(DESCRIPTORS - 3)); break;
    }
}

static void open_some(void) {
    int fds[2];
    switch (chance(5)) {
    case 0: timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); break;
    case 1: eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC); break;
    case 2: epoll_create1(EPOLL_CLOEXEC); break;
    case 3:
        if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) return;
        break;
    default: socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds); break;
    }
}

static void ignore(int number) {
    (void)number;
}

/* What another thread has unmapped or protected: this thread goes on elsewhere. */
static _Noreturn void give_up_thread(int number) {
    (void)number;
    syscall(SYS_exit, 0);
    for (;;) pause();
}

static void *be_hostile(void *seed) {
    state = *(unsigned *)seed;
    for (int each = 0; each < calls; each++) {
        if (chance(3) == 0) scribble();
        if (chance(16) == 0) start_some();
        if (chance(8) == 0) open_some();
        call_some();
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    unsigned seeds[THREADS];
    pthread_t threads[THREADS];
    calls = atoi(argv[2]);
    for (int each = 0; each < 3; each++) {
        int fd = open("/dev/null", O_RDWR);
        if (each == 0) dup2(fd, 0);
        close(fd);
    }
    signal(SIGUSR1, ignore);
    signal(SIGSEGV, give_up_thread);
    signal(SIGBUS, give_up_thread);
    alarm(END_S);
    memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 0, PAGES * PAGE);
    for (int page = 1; page < PAGES; page += 2) {
        memset(memory + page * PAGE, GUARD, PAGE);
        mprotect(memory + page * PAGE, PAGE, PROT_NONE);
    }
    for (unsigned each = 0; each < THREADS; each++) {
        seeds[each] = (unsigned)atoi(argv[1]) * THREADS + each;
        pthread_create(&threads[each], NULL, be_hostile, &seeds[each]);
    }
    /* One that has ended by the signal's handler is as good as any. */
    for (int each = 0; each < THREADS; each++) pthread_join(threads[each], NULL);
    int changed = 0;
    for (int page = 1; page < PAGES; page += 2) {
        mprotect(memory + page * PAGE, PAGE, PROT_READ);
        for (int at = 0; at < PAGE; at++) changed += memory[page * PAGE + at] != GUARD;
    }
    printf("%d changed\n", changed);
    return 0;
}
