/* All the ways of C to sleep, to wait with a limit, to be interrupted, and to read a clock, each with the time at which
 * it ended. Argument: which part. Its output under the supervisor is known line by line. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "tests/programs/stamps.h"

static volatile sig_atomic_t signals;

static void on_signal(int number) {
    (void)number;
    signals = signals + 1;
}

static void catch_signal(int number, int flags) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(number, &action, NULL);
}

static pthread_t start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) != 0) abort();
    return thread;
}

/* --- sleeps --- */

static void sleeps(void) {
    struct timespec time = {2, 500000001};
    show("start", 0);
    show("sleep 30", (int64_t)sleep(30));
    show("usleep 1500000", usleep(1500000));
    show("nanosleep 2.500000001", nanosleep(&time, NULL));
    show("clock_nanosleep monotonic", clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL));
    show("clock_nanosleep realtime", clock_nanosleep(CLOCK_REALTIME, 0, &time, NULL));
    show("clock_nanosleep boottime", clock_nanosleep(CLOCK_BOOTTIME, 0, &time, NULL));
    time = deadline_of_ms(CLOCK_MONOTONIC, 3600000);
    show("until, monotonic", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL));
    time = deadline_of_ms(CLOCK_REALTIME, 86400000);
    show("until, realtime", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL));
    show("until a moment that is over", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &(struct timespec){1, 0}, NULL));
    show("nanosleep 0", nanosleep(&(struct timespec){0, 0}, NULL));
    show("nanosleep of no time", result_of(nanosleep(&(struct timespec){0, NS_PER_S}, NULL)));
    show("clock_nanosleep of no clock", clock_nanosleep(77, 0, &time, NULL));
    show("clock_nanosleep of its own thread", clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &time, NULL));
    show("nanosleep at no address", result_of(syscall(SYS_nanosleep, 8, NULL)));
    thrd_sleep(&(struct timespec){1, 0}, NULL);
    show("thrd_sleep 1", 0);
}

/* --- clocks --- */

static int64_t called_clock_ns(clockid_t clock) {
    struct timespec now = {0};
    syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void show_clocks(void) {
    static const struct {
        const char *name;
        clockid_t id;
    } CLOCKS[] = {
        {"realtime", CLOCK_REALTIME},
        {"realtime coarse", CLOCK_REALTIME_COARSE},
        {"monotonic", CLOCK_MONOTONIC},
        {"monotonic coarse", CLOCK_MONOTONIC_COARSE},
        {"monotonic raw", CLOCK_MONOTONIC_RAW},
        {"boottime", CLOCK_BOOTTIME},
        {"tai", CLOCK_TAI},
        {"process", CLOCK_PROCESS_CPUTIME_ID},
        {"thread", CLOCK_THREAD_CPUTIME_ID},
    };
    for (size_t each = 0; each < sizeof CLOCKS / sizeof CLOCKS[0]; each++)
        printf("%s %" PRId64 " %+" PRId64 "\n", CLOCKS[each].name, clock_ns(CLOCKS[each].id),
               called_clock_ns(CLOCKS[each].id) - clock_ns(CLOCKS[each].id));
    struct timeval day, called_day;
    time_t now, called_now;
    gettimeofday(&day, NULL);
    syscall(SYS_gettimeofday, &called_day, NULL);
    time(&now);
    printf("gettimeofday %ld.%06ld, by a call %ld.%06ld\n", day.tv_sec, day.tv_usec, called_day.tv_sec,
           called_day.tv_usec);
#ifdef SYS_time
    syscall(SYS_time, &called_now);
#else
    called_now = now;
#endif
    struct timespec utc;
    timespec_get(&utc, TIME_UTC);
    printf("time %ld, by a call %ld, timespec_get %ld.%09ld\n", now, called_now, utc.tv_sec, utc.tv_nsec);
}

static void clocks(void) {
    show_clocks();
    usleep(1234567);
    show_clocks();
    clockid_t other;
    struct timespec now;
    clock_getcpuclockid(getppid(), &other);
    show("the clock of another process", result_of(clock_gettime(other, &now)));
    show("no clock", result_of(clock_gettime(77, &now)));
    show("at no address", result_of(syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, 8)));
    show("setting one", result_of(clock_settime(CLOCK_REALTIME, &now)));
    show("the day at no address", result_of(syscall(SYS_gettimeofday, 8, NULL)));
    struct tms spent;
    clock_t began = times(&spent);
    sleep(10);
    show("ticks in 10 s", times(&spent) - began);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    show("seconds of processor time", usage.ru_utime.tv_sec);
}

/* --- descriptors --- */

static void *write_later(void *pipe_end) {
    sleep(2);
    if (write(*(int *)pipe_end, "x", 1) != 1) abort();
    return NULL;
}

static void show_select(const char *step, int fd, bool with_pselect) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timeval limit = {2, 500000};
    struct timespec exact = {1, 1};
    int ready =
        with_pselect ? pselect(fd + 1, &set, NULL, NULL, &exact, NULL) : select(fd + 1, &set, NULL, NULL, &limit);
    show(step, ready);
    show("    in the set", FD_ISSET(fd, &set) != 0);
    if (!with_pselect) show("    left, ms", limit.tv_sec * 1000 + limit.tv_usec / 1000);
}

static void read_socket(int fd) {
    char byte;
    struct timeval limit = {4, 250000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    show("recv with SO_RCVTIMEO", result_of(recv(fd, &byte, 1, 0)));
    show("read with SO_RCVTIMEO", result_of(read(fd, &byte, 1)));
    show("recv that does not wait", result_of(recv(fd, &byte, 1, MSG_DONTWAIT)));
    struct iovec content = {&byte, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &content, .msg_iovlen = 1}};
    show("recvmmsg", result_of(recvmmsg(fd, &message, 1, 0, NULL)));
}

static void descriptors(void) {
    int fds[2], sockets[2], instance = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    if (pipe(fds) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) abort();
    struct pollfd polled[] = {{.fd = -1, .events = POLLIN}, {.fd = fds[0], .events = POLLIN}};
    epoll_ctl(instance, EPOLL_CTL_ADD, fds[0], &event);
    show("start", 0);
    show("poll of none", poll(NULL, 0, 5000));
    show("poll", poll(polled, 2, 7001));
    show("poll 0", poll(polled, 2, 0));
    show("ppoll", ppoll(polled, 2, &(struct timespec){0, 3}, NULL));
    show_select("select", fds[0], false);
    show_select("pselect", fds[0], true);
    show("epoll_wait", epoll_wait(instance, &event, 1, 11000));
    show("epoll_wait 0", epoll_wait(instance, &event, 1, 0));
    show("epoll_pwait2", epoll_pwait2(instance, &event, 1, &(struct timespec){0, 7}, NULL));
    read_socket(sockets[0]);
    pthread_t writer = start(write_later, &fds[1]);
    show("poll with a writer", poll(polled, 2, 60000));
    pthread_join(writer, NULL);
    show_select("select with data", fds[0], false);
    show("epoll_wait with data", epoll_wait(instance, &event, 1, 60000));
    char byte;
    show("read", read(fds[0], &byte, 1));
    writer = start(write_later, &fds[1]);
    show("read with a writer", read(fds[0], &byte, 1));
    pthread_join(writer, NULL);
    writer = start(write_later, &sockets[1]);
    show("recv with a writer", recv(sockets[0], &byte, 1, 0));
    pthread_join(writer, NULL);
    close(fds[0]);
    show("poll of a closed one", poll(&polled[1], 1, 1000));
    show("    its events", polled[1].revents);
    show("read of a closed one", result_of(read(fds[0], &byte, 1)));
    show("epoll_wait of none", result_of(epoll_wait(77, &event, 1, 1000)));
    show("epoll_wait of no epoll", result_of(epoll_wait(sockets[0], &event, 1, 1000)));
}

/* --- timers --- */

static void set_timerfd(int fd, int flags, struct timespec first, struct timespec every) {
    struct itimerspec setting = {.it_value = first, .it_interval = every};
    if (timerfd_settime(fd, flags, &setting, NULL) != 0) abort();
}

static int64_t expiries(int fd) {
    uint64_t count;
    return read(fd, &count, sizeof count) == sizeof count ? (int64_t)count : -errno;
}

static void descriptor_timers(void) {
    int steady = timerfd_create(CLOCK_MONOTONIC, 0), wall = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    struct itimerspec left;
    set_timerfd(steady, 0, (struct timespec){2, 0}, (struct timespec){5, 500000000});
    for (int each = 0; each < 3; each++) show("timerfd", expiries(steady));
    sleep(20);
    show("timerfd after 20 s", expiries(steady));
    timerfd_gettime(steady, &left);
    show("    left, ms", left.it_value.tv_sec * 1000 + left.it_value.tv_nsec / NS_PER_MS);
    set_timerfd(steady, 0, (struct timespec){0, 0}, (struct timespec){0, 0});
    set_timerfd(wall, TFD_TIMER_ABSTIME, deadline_of_ms(CLOCK_REALTIME, 3000), (struct timespec){0, 0});
    show("timerfd that does not wait", expiries(wall));
    struct pollfd polled = {.fd = wall, .events = POLLIN};
    show("poll of timerfd", poll(&polled, 1, 60000));
    show("timerfd absolute", expiries(wall));
    set_timerfd(wall, TFD_TIMER_ABSTIME, (struct timespec){1, 0}, (struct timespec){0, 0});
    show("timerfd in the past", expiries(wall));
}

static void timers_of_signals(void) {
    timer_t timer;
    struct itimerspec setting = {.it_value = {3, 0}, .it_interval = {4, 0}}, left;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    catch_signal(SIGUSR1, 0);
    catch_signal(SIGALRM, 0);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &setting, NULL);
    show("pause until timer_create", result_of(pause()));
    show("sleep, left", (int64_t)sleep(60));
    timer_gettime(timer, &left);
    show("    left, s", left.it_value.tv_sec);
    timer_delete(timer);
    show("a timer that is gone", result_of(timer_gettime(timer, &left)));
    struct itimerval interval = {.it_value = {1, 500000}, .it_interval = {2, 0}}, none = {0}, old;
    setitimer(ITIMER_REAL, &interval, NULL);
    show("pause until setitimer", result_of(pause()));
    show("read until setitimer", result_of(poll(NULL, 0, -1)));
    setitimer(ITIMER_REAL, &none, &old);
    show("    left, ms", old.it_value.tv_sec * 1000 + old.it_value.tv_usec / 1000);
    alarm(6);
    struct timespec remaining;
    show("nanosleep until alarm", result_of(nanosleep(&(struct timespec){10, 1}, &remaining)));
    show("    left, ns", remaining.tv_sec * NS_PER_S + remaining.tv_nsec);
    alarm(60);
    sleep(10);
    show("alarm, left", (int64_t)alarm(0));
    show("signals", signals);
}

static sem_t told;

static void tell(union sigval value) {
    show("in the thread of a timer", value.sival_int);
    sem_post(&told);
}

static void timers(void) {
    show("start", 0);
    descriptor_timers();
    timers_of_signals();
    timer_t timer;
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD, .sigev_notify_function = tell, .sigev_value = {.sival_int = 42}};
    struct itimerspec setting = {.it_value = {5, 0}};
    sem_init(&told, 0, 0);
    timer_create(CLOCK_REALTIME, &event, &timer);
    timer_settime(timer, 0, &setting, NULL);
    show("sem_wait", sem_wait(&told));
}

/* --- locks --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;

static void *signal_later(void *unused) {
    sleep(3);
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *hold_mutex(void *held) {
    pthread_mutex_lock(held);
    sleep(8);
    pthread_mutex_unlock(held);
    return NULL;
}

static void *hold_shared(void *unused) {
    pthread_rwlock_wrlock(&shared);
    sleep(4);
    pthread_rwlock_unlock(&shared);
    return unused;
}

static void *meet(void *unused) {
    sleep(9);
    pthread_barrier_wait(&barrier);
    return unused;
}

static void conditions(void) {
    pthread_condattr_t attributes;
    pthread_cond_t steady;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&steady, &attributes);
    pthread_mutex_lock(&mutex);
    struct timespec until = deadline_of_ms(CLOCK_REALTIME, 20000);
    show("pthread_cond_timedwait", -pthread_cond_timedwait(&condition, &mutex, &until));
    until = deadline_of_ms(CLOCK_MONOTONIC, 1250);
    show("pthread_cond_timedwait monotonic", -pthread_cond_timedwait(&steady, &mutex, &until));
    show("pthread_cond_clockwait", -pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until));
    pthread_t other = start(signal_later, NULL);
    until = deadline_of_ms(CLOCK_REALTIME, 20000);
    show("signalled", -pthread_cond_timedwait(&condition, &mutex, &until));
    pthread_mutex_unlock(&mutex);
    pthread_join(other, NULL);
}

static void locks(void) {
    struct timespec until;
    show("start", 0);
    conditions();
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    until = deadline_of_ms(CLOCK_REALTIME, 6000);
    show("sem_timedwait", result_of(sem_timedwait(&semaphore, &until)));
    pthread_t other = start(hold_mutex, &mutex);
    sched_yield();
    until = deadline_of_ms(CLOCK_REALTIME, 2000);
    show("pthread_mutex_timedlock", -pthread_mutex_timedlock(&mutex, &until));
    show("pthread_mutex_trylock", -pthread_mutex_trylock(&mutex));
    show("pthread_mutex_lock", -pthread_mutex_lock(&mutex));
    pthread_mutex_unlock(&mutex);
    pthread_join(other, NULL);
    other = start(hold_shared, NULL);
    sched_yield();
    until = deadline_of_ms(CLOCK_REALTIME, 1000);
    show("pthread_rwlock_timedrdlock", -pthread_rwlock_timedrdlock(&shared, &until));
    show("pthread_rwlock_rdlock", -pthread_rwlock_rdlock(&shared));
    pthread_join(other, NULL);
    pthread_barrier_init(&barrier, NULL, 2);
    other = start(meet, NULL);
    pthread_barrier_wait(&barrier);
    show("pthread_barrier_wait", 0);
    until = deadline_of_ms(CLOCK_REALTIME, 30000);
    show("pthread_timedjoin_np", -pthread_timedjoin_np(other, NULL, &until));
    other = start(hold_mutex, &mutex);
    until = deadline_of_ms(CLOCK_REALTIME, 5000);
    show("pthread_timedjoin_np too early", -pthread_timedjoin_np(other, NULL, &until));
    pthread_cancel(other);
    pthread_join(other, NULL);
    show("cancelled", 0);
}

/* --- mutexes with priority inheritance, semaphores that processes share --- */

static void inheriting(void) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t robust;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    show("start", 0);
    pthread_t other = start(hold_mutex, &robust);
    sched_yield();
    struct timespec until = deadline_of_ms(CLOCK_REALTIME, 2000);
    show("pthread_mutex_timedlock", -pthread_mutex_timedlock(&robust, &until));
    until = deadline_of_ms(CLOCK_MONOTONIC, 2500);
    show("pthread_mutex_clocklock", -pthread_mutex_clocklock(&robust, CLOCK_MONOTONIC, &until));
    show("pthread_mutex_trylock", -pthread_mutex_trylock(&robust));
    show("pthread_mutex_lock", -pthread_mutex_lock(&robust));
    show("pthread_mutex_unlock", -pthread_mutex_unlock(&robust));
    pthread_join(other, NULL);
    other = start(hold_mutex, &robust);
    sched_yield();
    pthread_cancel(other);
    show("pthread_mutex_lock of one that has ended", -pthread_mutex_lock(&robust));
    pthread_join(other, NULL);
}

/* In memory that the processes have at different addresses. */
static void shared_semaphores(void) {
    int fd = memfd_create("shared", 0);
    if (ftruncate(fd, 4096) != 0) abort();
    sem_t *here = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sem_t *there = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sem_init(here, 1, 0);
    show("start", 0);
    struct timespec until = deadline_of_ms(CLOCK_REALTIME, 1500);
    show("sem_timedwait", result_of(sem_timedwait(here, &until)));
    pid_t child = fork();
    if (child == 0) {
        sleep(4);
        sem_post(there);
        sem_wait(&there[1]);
        show("in the child", 0);
        _exit(0);
    }
    sem_init(&here[1], 1, 0);
    show("sem_wait", sem_wait(here));
    sleep(2);
    sem_post(&here[1]);
    waitpid(child, NULL, 0);
    show("waitpid", 0);
}

/* --- signals --- */

static void *signal_thread_later(void *thread) {
    sleep(5);
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

static void *signal_process_later(void *unused) {
    sleep(5);
    kill(getpid(), SIGUSR1);
    return unused;
}

static void interruptions(void) {
    pthread_t self = pthread_self(), other;
    struct timespec left;
    catch_signal(SIGUSR1, 0);
    show("start", 0);
    other = start(signal_thread_later, &self);
    show("nanosleep", result_of(nanosleep(&(struct timespec){12, 0}, &left)));
    show("    left, ns", left.tv_sec * NS_PER_S + left.tv_nsec);
    pthread_join(other, NULL);
    other = start(signal_process_later, NULL);
    show("clock_nanosleep", -clock_nanosleep(CLOCK_REALTIME, 0, &(struct timespec){12, 0}, &left));
    show("    left, ns", left.tv_sec * NS_PER_S + left.tv_nsec);
    pthread_join(other, NULL);
    other = start(signal_thread_later, &self);
    show("poll", result_of(poll(NULL, 0, 60000)));
    pthread_join(other, NULL);
    catch_signal(SIGUSR1, SA_RESTART);
    int fds[2];
    char byte;
    if (pipe(fds) != 0) abort();
    other = start(signal_thread_later, &self);
    pthread_t writer = start(write_later, &fds[1]);
    show("read", read(fds[0], &byte, 1));
    pthread_join(writer, NULL);
    pthread_join(other, NULL);
    other = start(signal_thread_later, &self);
    show("nanosleep, SA_RESTART", result_of(nanosleep(&(struct timespec){12, 0}, &left)));
    pthread_join(other, NULL);
    sigset_t blocked, old;
    siginfo_t information;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &old);
    show("sigtimedwait", result_of(sigtimedwait(&blocked, NULL, &(struct timespec){3, 0})));
    other = start(signal_process_later, NULL);
    show("sigtimedwait with a signal", result_of(sigtimedwait(&blocked, &information, &(struct timespec){30, 0})));
    pthread_join(other, NULL);
    other = start(signal_process_later, NULL);
    show("sigwaitinfo", result_of(sigwaitinfo(&blocked, &information)));
    pthread_join(other, NULL);
    other = start(signal_thread_later, &self);
    show("sigsuspend", result_of(sigsuspend(&old)));
    pthread_join(other, NULL);
    show("signals", signals);
}

/* --- processes --- */

static pid_t child_that_sleeps(unsigned time_s, int status) {
    pid_t child = fork();
    if (child == 0) {
        sleep(time_s);
        _exit(status);
    }
    return child;
}

static void *wait_for_child(void *child) {
    int status = 0;
    waitpid(*(pid_t *)child, &status, 0);
    show("waitpid in a thread", WEXITSTATUS(status));
    return NULL;
}

static void processes(void) {
    int status;
    siginfo_t information = {0};
    show("start", 0);
    pid_t child = child_that_sleeps(3, 7), another = child_that_sleeps(5, 8);
    show("waitpid", waitpid(child, &status, 0) == child);
    show("    status", WEXITSTATUS(status));
    show("wait", wait(&status) == another);
    show("    status", WEXITSTATUS(status));
    show("wait for none", result_of(wait(&status)));
    child = child_that_sleeps(4, 9);
    show("waitpid that does not wait", waitpid(child, &status, WNOHANG));
    show("waitid", waitid(P_ALL, 0, &information, WEXITED));
    show("    status", information.si_status);
    child = child_that_sleeps(60, 1);
    sleep(1);
    kill(child, SIGKILL);
    show("waitpid of a killed one", waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    child = child_that_sleeps(2, 5);
    another = child_that_sleeps(1, 6);
    pthread_t one = start(wait_for_child, &child), two = start(wait_for_child, &another);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    child = vfork();
    if (child == 0) {
        execl("/bin/sleep", "sleep", "100", (char *)NULL);
        _exit(127);
    }
    show("vfork", child > 0);
    show("waitpid of sleep 100", waitpid(child, &status, 0) == child && status == 0);
    show("system", system("sleep 2; exit 3") >> 8);
    FILE *answer = popen("sleep 4; echo 6", "r");
    int number = 0;
    if (!answer || fscanf(answer, "%d", &number) != 1) abort();
    show("popen", number);
    pclose(answer);
}

/* --- processes by descriptors --- */

static int status_by_descriptor(int fd) {
    siginfo_t information = {0};
    return waitid(P_PIDFD, (id_t)fd, &information, WEXITED) == 0 ? information.si_status : -1;
}

static void descriptors_of_processes(void) {
    int status;
    show("start", 0);
    pid_t child = child_that_sleeps(5, 3), another = child_that_sleeps(2, 4), third = child_that_sleeps(9, 6);
    int fd = (int)syscall(SYS_pidfd_open, child, 0);
    show("waitid, while another ends", status_by_descriptor(fd));
    show("waitid again", status_by_descriptor(fd));
    show("wait for any", wait(&status) == another);
    show("wait for the third", wait(&status) == third);
    close(fd);
    child = child_that_sleeps(60, 1);
    fd = (int)syscall(SYS_pidfd_open, child, 0);
    sleep(1);
    show("no signal", syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
    sleep(1);
    show("SIGKILL", syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
    sleep(1);
    show("waitid of a killed one", status_by_descriptor(fd));
    close(fd);
}

/* --- signals by descriptors --- */

static void child_that_signals(unsigned seconds) {
    if (fork() != 0) return;
    sleep(seconds);
    kill(getppid(), SIGURG);
    _exit(0);
}

/* What the event was registered with; 0: none came within the limit. */
static int event_of(int instance, int limit_ms) {
    struct epoll_event event = {0};
    int count = epoll_wait(instance, &event, 1, limit_ms);
    return count > 0 ? event.data.fd : count;
}

static int64_t next_signal(int fd) {
    struct signalfd_siginfo information;
    return read(fd, &information, sizeof information) == sizeof information ? (int64_t)information.ssi_signo : -errno;
}

static void descriptors_of_signals(void) {
    sigset_t set;
    int ends[2], instance = epoll_create1(0);
    show("start", 0);
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    if (pipe(ends) != 0) abort();
    struct epoll_event signals_come = {.events = EPOLLIN, .data.fd = 1}, bytes_come = {.events = EPOLLIN, .data.fd = 2};
    epoll_ctl(instance, EPOLL_CTL_ADD, fd, &signals_come);
    epoll_ctl(instance, EPOLL_CTL_ADD, ends[0], &bytes_come);
    show("epoll, for nothing", event_of(instance, 2000));
    child_that_signals(3);
    show("epoll, for a signal", event_of(instance, -1));
    show("    signal", next_signal(fd));
    show("    no other", next_signal(fd));
    kill(getpid(), SIGURG);
    show("epoll, of a pending signal", event_of(instance, 5000));
    show("    signal", next_signal(fd));
    pthread_t writer = start(write_later, &ends[1]);
    show("epoll, for bytes", event_of(instance, -1));
    pthread_join(writer, NULL);
    child_that_signals(4);
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    show("poll", poll(&polled, 1, 9000));
    show("    signal", next_signal(fd));
    fcntl(fd, F_SETFL, 0);
    child_that_signals(5);
    show("read that waits", next_signal(fd));
    close(instance);
}

/* --- waiting again until the deadline is over --- */

static bool is_after(struct timespec one, struct timespec other) {
    return one.tv_sec > other.tv_sec || (one.tv_sec == other.tv_sec && one.tv_nsec > other.tv_nsec);
}

/* No kernel wakes at the very nanosecond, so programs take `now > deadline` for certain after one wait. */
static void rounds(void) {
    pthread_mutex_lock(&mutex);
    show("start", 0);
    struct timespec until = deadline_of_ms(CLOCK_REALTIME, 5000), now;
    int count = 0, result;
    do {
        result = pthread_cond_timedwait(&condition, &mutex, &until);
        clock_gettime(CLOCK_REALTIME, &now);
    } while (!is_after(now, until) && ++count < 9);
    show("pthread_cond_timedwait", -result);
    show("    rounds too many", count);
    pthread_mutex_unlock(&mutex);
    until = deadline_of_ms(CLOCK_MONOTONIC, 3000);
    for (count = 0; count < 9; count++) {
        poll(NULL, 0, 3000);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (is_after(now, until)) break;
    }
    show("poll", count);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    until = deadline_of_ms(CLOCK_MONOTONIC, 1000);
    struct itimerspec left;
    set_timerfd(timer, TFD_TIMER_ABSTIME, until, (struct timespec){2, 0});
    poll(NULL, 0, 1000);
    timerfd_gettime(timer, &left);
    show("armed timerfd, left", left.it_value.tv_sec > 0 || left.it_value.tv_nsec > 0);
    show("timerfd", expiries(timer));
    clock_gettime(CLOCK_MONOTONIC, &now);
    show("    is after its deadline", is_after(now, until));
    show("timerfd, 2 s after its deadline", expiries(timer));
}

/* --- threads --- */

static void *sleep_and_show(void *which) {
    struct timespec time = timespec_of_ms(1000 - *(int *)which % 10);
    nanosleep(&time, NULL);
    if (*(int *)which % 10 == 0) show("thread", *(int *)which);
    return NULL;
}

static void threads(void) {
    enum { THREADS = 50 };
    pthread_t each[THREADS];
    int which[THREADS];
    show("start", 0);
    for (int round = 0; round < 3; round++) {
        for (int at = 0; at < THREADS; at++) {
            which[at] = at;
            each[at] = start(sleep_and_show, &which[at]);
        }
        for (int at = 0; at < THREADS; at++) pthread_join(each[at], NULL);
        show("joined", round);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } PARTS[] = {
        {"inheriting", inheriting},
        {"shared", shared_semaphores},
        {"sleeps", sleeps},
        {"clocks", clocks},
        {"descriptors", descriptors},
        {"timers", timers},
        {"locks", locks},
        {"interruptions", interruptions},
        {"processes", processes},
        {"process-descriptors", descriptors_of_processes},
        {"signal-descriptors", descriptors_of_signals},
        {"rounds", rounds},
        {"threads", threads},
    };
    for (size_t each = 0; each < sizeof PARTS / sizeof PARTS[0]; each++) {
        if (argc != 2 || strcmp(argv[1], PARTS[each].name) != 0) continue;
        PARTS[each].run();
        return 0;
    }
    fprintf(stderr, "usage: time_calls PART\n");
    return 2;
}
