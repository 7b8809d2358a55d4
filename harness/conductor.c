#include "harness/conductor.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/preload/clock_page.h"
#include "harness/random.h"
#include "harness/rest.h"

enum { SERVERS = 32, PROCESSES = STAGE_STRANDS + SERVERS, CALIBRATION_PPM = -999999 };
/* After how many PINGs, one after the other, all is written that a server had to write. When a PING comes in, so has
 * what was sent before, but its answer may be written first: hence two. The first one also makes a server look at its
 * clock and give up what it sat on too long. Whoever has only just been accepted is heard after the first: hence three.
 */
enum { PINGS_HEARD = 2, PINGS_ACCEPTED = 3 };
/* A Java machine that has only just started has a lot to calculate yet, on one core, beside whoever else is there. */
enum { FENCE_LIMIT_S = 10, REST_LIMIT_S = 30 };
static const struct timeval FENCE_LIMIT = {.tv_sec = FENCE_LIMIT_S};
enum { RECORD_TRIES = 10000 };
static const struct timespec RECORD_NAP = {.tv_nsec = 100000};

struct server {
    int clock_fd;             /* -1: the machine's clock */
    struct clock_page *clock; /* in virtual time: the same file, mapped */
    int64_t offset_ns;
    int64_t drift_ppm, since_ns; /* gains so much, from this stamp of the trial's clock on */
    int64_t start_wall_ns;       /* real time: when its process began, by the machine's clock */
    int silent, busy;            /* how many have a reason */
    int replicas;
    int pings_due;      /* so many more, and all that it had to write is written */
    redisContext *link; /* for PING and WAIT only */
    char address[108];  /* a unix socket's path, or as the proxy knows it; empty: nobody says when it hears of something
                         */
    int pid;            /* of a server that is not asked but looked at; 0: it is asked, or does not run */
    struct thread_watch *threads; /* of a server that has a timer */
    int timer;                    /* its thread that looks at the clock by itself; 0: it has none */
    int64_t looked_ns;            /* the clock, when that thread had looked at it for the last time */
};

struct conductor {
    struct stage *stage;
    struct random random;
    int yield_fd;
    int signal_fd; /* -1: none */
    int64_t patience_ns;
    int strands;
    int turn_fd[STAGE_STRANDS];
    int pid_fd[STAGE_STRANDS]; /* -1: not watched, or seen to end */
    int servers;
    struct server server[SERVERS];
    int dead;
    redisContext *proxy; /* its control connection; NULL: links lead straight to the servers */
    char proxy_path[108];
    bool settled;         /* nothing was in flight that could still arrive, when traffic stood there: */
    uint64_t traffic;     /* of the stage */
    uint64_t unawaited;   /* of the stage, when a turn was last given */
    char unanswered[160]; /* who kept the last fence that failed from coming off, in words; empty: none has failed */
    bool over_tcp;        /* what goes to and from some server can be on its way without anybody knowing */
    bool replicated;      /* some server has, or had, replicas: what one hears of, another does */
    struct {
        int pid, reasons;
    } stopped[PROCESSES];
    int stalled[STAGE_STRANDS], suspended[STAGE_STRANDS]; /* how many have a reason */
    int64_t suspended_at_ns[STAGE_STRANDS];
};

/* Counts who has a reason, never below none. */
static int reasons_count(int *reasons, bool more) {
    if (more) ++*reasons;
    else if (*reasons > 0) --*reasons;
    return *reasons;
}

static enum strand_state state_of(const struct conductor *conductor, int strand) {
    return (enum strand_state)atomic_load_explicit(&conductor->stage->strands[strand].state, memory_order_acquire);
}

static void state_set(struct conductor *conductor, int strand, enum strand_state state) {
    atomic_store_explicit(&conductor->stage->strands[strand].state, (uint32_t)state, memory_order_release);
}

static int64_t deadline_of(const struct conductor *conductor, int strand) {
    return atomic_load_explicit(&conductor->stage->strands[strand].deadline_ns, memory_order_relaxed);
}

static bool is_stopped(const struct conductor *conductor, int strand) {
    return atomic_load_explicit(&conductor->stage->strands[strand].stopped, memory_order_acquire);
}

static bool is_virtual(const struct conductor *conductor) {
    return conductor->stage->time == HISTORY_TIME_VIRTUAL;
}

/* --- setting up --- */

struct conductor *conductor_open(const char *path, struct history_error *error) {
    struct stage *stage = stage_open(path, error);
    if (!stage) return NULL;
    struct conductor *conductor = calloc(1, sizeof *conductor);
    if (!conductor) abort();
    conductor->stage = stage;
    conductor->random = random_split(stage->seed, 0);
    conductor->signal_fd = -1;
    conductor->patience_ns = INT64_MAX;
    conductor->yield_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (conductor->yield_fd >= 0) return conductor;
    snprintf(error->text, sizeof error->text, "eventfd: %s", strerror(errno));
    conductor_close(conductor);
    return NULL;
}

static void clock_unmap(struct server *server) {
    if (server->clock) munmap(server->clock, sizeof *server->clock);
    if (server->clock_fd >= 0) close(server->clock_fd);
}

void conductor_close(struct conductor *conductor) {
    if (!conductor) return;
    for (int strand = 0; strand < conductor->strands; strand++) {
        close(conductor->turn_fd[strand]);
        if (conductor->pid_fd[strand] >= 0) close(conductor->pid_fd[strand]);
    }
    for (int server = 0; server < conductor->servers; server++) {
        clock_unmap(&conductor->server[server]);
        if (conductor->server[server].link) redisFree(conductor->server[server].link);
        thread_watch_close(conductor->server[server].threads);
    }
    if (conductor->proxy) redisFree(conductor->proxy);
    if (conductor->yield_fd >= 0) close(conductor->yield_fd);
    stage_close(conductor->stage);
    free(conductor);
}

void conductor_set_signal_fd(struct conductor *conductor, int fd) {
    conductor->signal_fd = fd;
}

void conductor_set_patience(struct conductor *conductor, int64_t patience_ns) {
    conductor->patience_ns = patience_ns;
}

int conductor_yield_fd(const struct conductor *conductor) {
    return conductor->yield_fd;
}

int conductor_turn_fd(const struct conductor *conductor, int strand) {
    return conductor->turn_fd[strand];
}

int conductor_add_strand(struct conductor *conductor) {
    if (conductor->strands == STAGE_STRANDS) return -1;
    int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0) return -1;
    conductor->turn_fd[conductor->strands] = fd;
    conductor->pid_fd[conductor->strands] = -1;
    return conductor->strands++;
}

void conductor_expect(struct conductor *conductor, int strand) {
    state_set(conductor, strand, STRAND_RUNNING);
}

bool conductor_watch(struct conductor *conductor, int strand, int pid) {
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) return false;
    conductor->pid_fd[strand] = fd;
    conductor->stage->strands[strand].pid = pid;
    return true;
}

void conductor_forget(struct conductor *conductor, int pid) {
    for (int strand = 0; strand < conductor->strands; strand++) {
        if (conductor->stage->strands[strand].pid != pid) continue;
        state_set(conductor, strand, STRAND_GONE);
        if (conductor->pid_fd[strand] >= 0) close(conductor->pid_fd[strand]);
        conductor->pid_fd[strand] = -1;
    }
    for (int each = 0; each < PROCESSES; each++)
        if (conductor->stopped[each].pid == pid) conductor->stopped[each].pid = conductor->stopped[each].reasons = 0;
}

static void drain(int fd) {
    char bytes[64];
    struct pollfd filled = {.fd = fd, .events = POLLIN};
    while (poll(&filled, 1, 0) > 0 && read(fd, bytes, sizeof bytes) > 0) continue;
}

void conductor_reuse_strand(struct conductor *conductor, int strand) {
    struct strand_place *place = &conductor->stage->strands[strand];
    drain(conductor->turn_fd[strand]);
    conductor->stalled[strand] = 0;
    place->pid = 0;
    atomic_store(&place->appends, 0);
    atomic_store(&place->stopped, 0);
    atomic_store(&place->standing, 0);
    atomic_store(&place->deadline_ns, 0);
    atomic_store(&place->armed_countdown, 0);
    atomic_store(&place->valid_until_ns, 0);
    memset(place->held_at, 0, STAGE_NAME);
    place->step = (struct step){.kind = STEP_NONE};
    state_set(conductor, strand, STRAND_ABSENT);
}

/* --- clocks --- */

int64_t conductor_mono_ns(const struct conductor *conductor) {
    return stage_mono_ns(conductor->stage);
}

int64_t conductor_wall_ns(const struct conductor *conductor) {
    return stage_wall_ns(conductor->stage);
}

int64_t conductor_server_wall_us(const struct conductor *conductor, int server) {
    const struct server *clock = &conductor->server[server];
    int64_t gained_ns = stage_drift_ns(stage_mono_ns(conductor->stage) - clock->since_ns, clock->drift_ppm);
    return (stage_wall_ns(conductor->stage) + clock->offset_ns + gained_ns) / CLOCK_NS_PER_US;
}

/* The time at which it stands. */
static size_t clock_say_time(const struct conductor *conductor, int server, char *text, size_t size) {
    int64_t wall_us = conductor_server_wall_us(conductor, server);
    time_t seconds = wall_us / 1000000;
    struct tm calendar;
    gmtime_r(&seconds, &calendar);
    size_t length = strftime(text, size, "%Y-%m-%d %H:%M:%S", &calendar);
    return length + (size_t)snprintf(text + length, size - length, ".%06d5\n", (int)(wall_us % 1000000));
}

/* How it differs from the machine's; the text is always of the same length, so it never has a rest of the one before.
 */
static size_t clock_say_rate(int64_t offset_ns, int64_t drift_ppm, char *text, size_t size) {
    return (size_t)snprintf(text, size, "%+021.9f x%013.6f\n", (double)offset_ns / CLOCK_NS_PER_S,
                            1 + (double)drift_ppm / 1e6);
}

static bool clock_write(const struct conductor *conductor, int server) {
    const struct server *clock = &conductor->server[server];
    char text[CLOCK_PAGE_TEXT];
    if (clock->clock_fd < 0) return true;
    if (clock->clock) {
        int64_t wall_ns = conductor_server_wall_us(conductor, server) * CLOCK_NS_PER_US;
        atomic_store_explicit(&clock->clock->wall_ns, wall_ns, memory_order_release);
    }
    int64_t gained_ns = stage_drift_ns(clock_real_wall_ns() - clock->start_wall_ns, clock->drift_ppm);
    size_t length = is_virtual(conductor)
                        ? clock_say_time(conductor, server, text, sizeof text)
                        : clock_say_rate(clock->offset_ns - gained_ns, clock->drift_ppm, text, sizeof text);
    return pwrite(clock->clock_fd, text, length, 0) == (ssize_t)length;
}

/* At this time a server may have something to say to somebody, or the proxy something to pass on. */
static bool is_awaited(const struct conductor *conductor, int64_t mono_ns) {
    if (atomic_load_explicit(&conductor->stage->proxy_deadline_ns, memory_order_acquire) <= mono_ns) return true;
    for (int strand = 0; strand < conductor->strands; strand++)
        if (state_of(conductor, strand) == STRAND_WAITING) return true;
    for (int server = 0; server < conductor->servers; server++)
        if (conductor->server[server].timer) return true;
    return false;
}

static void ping_owe(struct server *server, int pings) {
    if (server->pings_due < pings) server->pings_due = pings;
}

/* Every server may have something to say. */
static void pings_owe(struct conductor *conductor, int pings) {
    for (int each = 0; each < conductor->servers; each++) ping_owe(&conductor->server[each], pings);
}

/* A server that has a clock may have something to say when it has moved. */
static void clocks_owe(struct conductor *conductor) {
    for (int each = 0; each < conductor->servers; each++)
        if (conductor->server[each].clock_fd >= 0) ping_owe(&conductor->server[each], PINGS_HEARD);
}

static bool clock_set(struct conductor *conductor, int64_t mono_ns) {
    bool written = true;
    clocks_owe(conductor);
    atomic_store_explicit(&conductor->stage->mono_ns, mono_ns, memory_order_release);
    if (is_awaited(conductor, mono_ns)) conductor->settled = false;
    for (int server = 0; server < conductor->servers; server++) written &= clock_write(conductor, server);
    return written;
}

static bool clock_map(const struct conductor *conductor, struct server *server, const char *path) {
    server->clock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (server->clock_fd < 0 || !is_virtual(conductor)) return server->clock_fd >= 0;
    if (ftruncate(server->clock_fd, sizeof *server->clock) != 0) return false;
    void *map = mmap(NULL, sizeof *server->clock, PROT_READ | PROT_WRITE, MAP_SHARED, server->clock_fd, 0);
    if (map == MAP_FAILED) return false;
    server->clock = map;
    return true;
}

int conductor_add_server(struct conductor *conductor, const char *clock_path, const char *socket_path,
                         struct history_error *error) {
    if (conductor->servers == SERVERS) {
        snprintf(error->text, sizeof error->text, "more than %d servers in one trial", SERVERS);
        return -1;
    }
    struct server *server = &conductor->server[conductor->servers];
    *server = (struct server){.clock_fd = -1};
    snprintf(server->address, sizeof server->address, "%s", socket_path ? socket_path : "");
    if (clock_path && !(clock_map(conductor, server, clock_path) && clock_write(conductor, conductor->servers))) {
        snprintf(error->text, sizeof error->text, "%.160s: %s", clock_path, strerror(errno));
        clock_unmap(server);
        return -1;
    }
    return conductor->servers++;
}

void conductor_set_process(struct conductor *conductor, int server, int pid) {
    thread_watch_close(conductor->server[server].threads);
    conductor->server[server].threads = NULL;
    conductor->server[server].timer = 0;
    conductor->server[server].pid = pid;
}

void conductor_set_timer(struct conductor *conductor, int server, int thread, const char *address) {
    snprintf(conductor->server[server].address, sizeof conductor->server[server].address, "%s", address);
    conductor->server[server].threads = thread_watch_open(conductor->server[server].pid, thread);
    conductor->server[server].timer = thread;
    conductor->server[server].looked_ns = -1;
    conductor_set_tcp(conductor);
}

void conductor_set_tcp(struct conductor *conductor) {
    conductor->over_tcp = true;
}

void conductor_set_replicas(struct conductor *conductor, int server, int replicas) {
    conductor->server[server].replicas = replicas;
    if (replicas > 0) conductor->replicated = true;
}

void conductor_set_silent(struct conductor *conductor, int server, bool silent) {
    if (conductor->server[server].link) redisFree(conductor->server[server].link);
    conductor->server[server].link = NULL;
    reasons_count(&conductor->server[server].silent, silent);
}

void conductor_set_busy(struct conductor *conductor, int server, bool busy) {
    reasons_count(&conductor->server[server].busy, busy);
}

bool conductor_server_works(const struct conductor *conductor, int server) {
    return conductor->server[server].silent == 0 && conductor->server[server].busy == 0;
}

bool conductor_set_clock(struct conductor *conductor, int server, int64_t offset_ns, int64_t drift_ppm) {
    struct server *clock = &conductor->server[server];
    if (clock->clock_fd < 0) return false;
    clock->offset_ns = offset_ns;
    clock->drift_ppm = drift_ppm;
    clock->since_ns = stage_mono_ns(conductor->stage);
    return clock_write(conductor, server);
}

bool conductor_clock_error(const struct conductor *conductor, int server, int64_t *offset_ns, int64_t *drift_ppm) {
    const struct server *clock = &conductor->server[server];
    int64_t since_ns = stage_mono_ns(conductor->stage) - clock->since_ns;
    *offset_ns = clock->offset_ns + stage_drift_ns(since_ns, clock->drift_ppm);
    *drift_ppm = clock->drift_ppm;
    return clock->clock_fd >= 0;
}

bool conductor_host_clock_error(const struct conductor *conductor, int strand, int64_t *offset_ns, int64_t *drift_ppm) {
    const struct strand_place *place = &conductor->stage->strands[strand];
    int64_t since_ns = stage_mono_ns(conductor->stage) - atomic_load(&place->wall_since_ns);
    *drift_ppm = atomic_load(&place->wall_drift_ppm);
    *offset_ns = atomic_load(&place->wall_offset_ns) + stage_drift_ns(since_ns, *drift_ppm);
    return true;
}

int64_t conductor_host_wall_ns(const struct conductor *conductor, int strand) {
    return stage_host_wall_ns(conductor->stage, &conductor->stage->strands[strand]);
}

int64_t conductor_host_mono_ns(const struct conductor *conductor, int strand) {
    int64_t now_ns = stage_host_mono_ns(conductor->stage, &conductor->stage->strands[strand]);
    if (conductor->suspended[strand] == 0) return now_ns;
    return now_ns - (stage_mono_ns(conductor->stage) - conductor->suspended_at_ns[strand]);
}

int64_t conductor_host_validity_ns(const struct conductor *conductor, int strand) {
    return atomic_load(&conductor->stage->strands[strand].valid_until_ns);
}

bool conductor_set_host_clock(struct conductor *conductor, int strand, int64_t offset_ns, int64_t drift_ppm) {
    struct strand_place *place = &conductor->stage->strands[strand];
    atomic_store_explicit(&place->wall_drift_ppm, 0, memory_order_release);
    atomic_store_explicit(&place->wall_since_ns, stage_mono_ns(conductor->stage), memory_order_release);
    atomic_store_explicit(&place->wall_offset_ns, offset_ns, memory_order_release);
    atomic_store_explicit(&place->wall_drift_ppm, drift_ppm, memory_order_release);
    return true;
}

bool conductor_set_proxy(struct conductor *conductor, const char *control_path, struct history_error *error) {
    snprintf(conductor->proxy_path, sizeof conductor->proxy_path, "%s", control_path);
    conductor->proxy = redisConnectUnixWithTimeout(control_path, FENCE_LIMIT);
    if (conductor->proxy && !conductor->proxy->err) return redisSetTimeout(conductor->proxy, FENCE_LIMIT) == REDIS_OK;
    snprintf(error->text, sizeof error->text, "the proxy at %.100s: %.100s", control_path,
             conductor->proxy ? conductor->proxy->errstr : "out of memory");
    return false;
}

void conductor_set_unreliable(struct conductor *conductor) {
    atomic_store_explicit(&conductor->stage->unreliable, 1, memory_order_release);
    conductor->settled = false;
}

/* --- turns --- */

static void give_turn(struct conductor *conductor, int strand, enum strand_state state) {
    uint64_t one = 1;
    state_set(conductor, strand, state);
    while (write(conductor->turn_fd[strand], &one, sizeof one) < 0 && errno == EINTR) continue;
}

void conductor_step(struct conductor *conductor, int strand, const struct step *step) {
    struct strand_place *place = &conductor->stage->strands[strand];
    place->step = *step;
    atomic_store_explicit(&place->last_turn, 0, memory_order_relaxed);
    place->result = (struct step_result){.outcome = OUTCOME_UNKNOWN};
    state_set(conductor, strand, STRAND_READY);
}

void conductor_continue(struct conductor *conductor, int strand) {
    memset(conductor->stage->strands[strand].held_at, 0, STAGE_NAME);
    state_set(conductor, strand, STRAND_READY);
}

void conductor_arm(struct conductor *conductor, int strand, const char *checkpoint, uint32_t nth) {
    struct strand_place *place = &conductor->stage->strands[strand];
    atomic_store_explicit(&place->armed_countdown, 0, memory_order_release);
    memset(place->armed_at, 0, sizeof place->armed_at);
    strncpy(place->armed_at, checkpoint, sizeof place->armed_at - 1);
    atomic_store_explicit(&place->armed_countdown, nth, memory_order_release);
}

void conductor_wind_down(struct conductor *conductor, int strand) {
    atomic_store_explicit(&conductor->stage->strands[strand].last_turn, 1, memory_order_release);
}

static void mark_stopped(struct strand_place *place, enum strand_stop why, bool stopped) {
    if (stopped) atomic_fetch_or(&place->stopped, (uint32_t)why);
    else atomic_fetch_and(&place->stopped, ~(uint32_t)why);
}

int conductor_set_stopped(struct conductor *conductor, int pid, bool stopped) {
    int each = 0;
    while (each < PROCESSES - 1 && conductor->stopped[each].pid != pid) each++;
    if (conductor->stopped[each].pid != pid)
        for (each = 0; each < PROCESSES - 1 && conductor->stopped[each].pid != 0; each++) continue;
    int left = reasons_count(&conductor->stopped[each].reasons, stopped);
    conductor->stopped[each].pid = left > 0 ? pid : 0;
    for (int strand = 0; strand < conductor->strands; strand++)
        if (conductor->stage->strands[strand].pid == pid)
            mark_stopped(&conductor->stage->strands[strand], STRAND_STOP_PROCESS, left > 0);
    return left;
}

void conductor_catch_up(const struct conductor *conductor, int pid) {
    if (is_virtual(conductor)) processes_await_rest(pid, FENCE_LIMIT_S * 1000);
}

int conductor_set_stalled(struct conductor *conductor, int strand, bool stalled) {
    struct strand_place *place = &conductor->stage->strands[strand];
    int left = reasons_count(&conductor->stalled[strand], stalled);
    mark_stopped(place, STRAND_STOP_STALL, left > 0);
    if (left == 0) syscall(SYS_futex, &place->stopped, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return left;
}

bool conductor_stands(const struct conductor *conductor, int strand) {
    return is_virtual(conductor) || atomic_load(&conductor->stage->strands[strand].standing) != 0;
}

uint64_t conductor_moves(const struct conductor *conductor, int strand) {
    return atomic_load(&conductor->stage->strands[strand].moves);
}

/* Sends SIGSTOP and waits until every thread of the child has stopped. */
static bool stop_child(int pid) {
    siginfo_t info = {0};
    if (pid <= 0 || kill(pid, SIGSTOP) < 0) return false; /* 0 would be our own group */
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) < 0)
        if (errno != EINTR) return false;
    return info.si_code == CLD_STOPPED;
}

bool conductor_stop_between_records(struct conductor *conductor, int strand) {
    struct strand_place *place = &conductor->stage->strands[strand];
    for (int tries = 0; tries < RECORD_TRIES; tries++) {
        if (!stop_child(place->pid)) return false;
        if (atomic_load(&place->appends) == 0) return true;
        kill(place->pid, SIGCONT);
        nanosleep(&RECORD_NAP, NULL);
    }
    return false;
}

int conductor_set_suspended(struct conductor *conductor, int strand, bool suspended) {
    int64_t now_ns = stage_mono_ns(conductor->stage), *since_ns = &conductor->suspended_at_ns[strand];
    int before = conductor->suspended[strand], left = reasons_count(&conductor->suspended[strand], suspended);
    if (before == 0 && left == 1) *since_ns = now_ns;
    if (before == 1 && left == 0) atomic_fetch_add(&conductor->stage->strands[strand].suspended_ns, now_ns - *since_ns);
    return left;
}

/* --- running --- */

static bool is_parked(enum strand_state state) {
    return state == STRAND_IDLE || state == STRAND_HELD || state == STRAND_GONE;
}

/* Whom a run waits for. */
struct awaited {
    const int *strands;
    int count;
    bool first; /* one of them is enough */
};

static bool have_parked(const struct conductor *conductor, const struct awaited *awaited) {
    int parked = 0;
    for (int each = 0; each < awaited->count; each++) parked += is_parked(state_of(conductor, awaited->strands[each]));
    return parked > 0 && (awaited->first || parked == awaited->count);
}

static bool anyone_runs(const struct conductor *conductor) {
    for (int strand = 0; strand < conductor->strands; strand++) {
        enum strand_state state = state_of(conductor, strand);
        if ((state == STRAND_RUNNING || state == STRAND_PROBING) && !is_stopped(conductor, strand)) return true;
    }
    return false;
}

/* Waits until a strand rings, a client ends or a signal comes, at most timeout_ms. DONE: somebody rang. */
static enum conductor_result await_ring(struct conductor *conductor, int timeout_ms) {
    struct pollfd fds[STAGE_STRANDS + 2] = {{.fd = conductor->yield_fd, .events = POLLIN},
                                            {.fd = conductor->signal_fd, .events = POLLIN}};
    for (int strand = 0; strand < conductor->strands; strand++)
        fds[strand + 2] = (struct pollfd){.fd = conductor->pid_fd[strand], .events = POLLIN};
    int ready = poll(fds, (nfds_t)conductor->strands + 2, timeout_ms);
    if (ready < 0) return errno == EINTR ? CONDUCTOR_INTERRUPTED : CONDUCTOR_FAILED;
    if (ready == 0) return CONDUCTOR_STUCK;
    if (fds[1].revents & POLLIN) return drain(conductor->signal_fd), CONDUCTOR_INTERRUPTED;
    for (int strand = 0; strand < conductor->strands; strand++) {
        if (!(fds[strand + 2].revents & POLLIN)) continue;
        conductor->dead = conductor->stage->strands[strand].pid;
        conductor_forget(conductor, conductor->dead);
        return CONDUCTOR_DIED;
    }
    drain(conductor->yield_fd);
    return CONDUCTOR_DONE;
}

static enum conductor_result await_yield(struct conductor *conductor, int real_limit_ms) {
    while (anyone_runs(conductor)) {
        enum conductor_result result = await_ring(conductor, real_limit_ms);
        if (result != CONDUCTOR_DONE) return result;
    }
    return CONDUCTOR_DONE;
}

/* The strands that want the turn, and how many. */
static int list_ready(const struct conductor *conductor, int ready[STAGE_STRANDS]) {
    int count = 0;
    for (int strand = 0; strand < conductor->strands; strand++)
        if (state_of(conductor, strand) == STRAND_READY && !is_stopped(conductor, strand)) ready[count++] = strand;
    return count;
}

/* A server's list of connections tells ours from the clients' by its name; the store keeps no such list. */
static void server_connect(struct server *server) {
    server->link = redisConnectUnixWithTimeout(server->address, FENCE_LIMIT);
    if (!server->link || server->link->err) return;
    redisSetTimeout(server->link, FENCE_LIMIT);
    redisReply *named = redisCommand(server->link, "CLIENT SETNAME lockstorm");
    if (named) freeReplyObject(named);
}

/* Writes the reason down and returns false, for a `return unanswered(...)`. */
__attribute__((format(printf, 2, 3))) static bool unanswered(struct conductor *conductor, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(conductor->unanswered, sizeof conductor->unanswered, format, arguments);
    va_end(arguments);
    return false;
}

const char *conductor_unanswered(const struct conductor *conductor) {
    return conductor->unanswered;
}

static bool server_ping(struct server *server) {
    if (!server->link) server_connect(server);
    redisReply *pong = server->link && !server->link->err ? redisCommand(server->link, "PING") : NULL;
    if (pong) return freeReplyObject(pong), true;
    if (server->link) redisFree(server->link);
    server->link = NULL;
    return false;
}

bool conductor_answers(struct conductor *conductor, int server) {
    return server_ping(&conductor->server[server]) || server_ping(&conductor->server[server]);
}

/* The replicas have acknowledged all that this server had told them when it was last asked PING, and whoever sat in
 * WAIT for that has been answered. Its clock stands, so a WAIT with a limit would have none either. */
static bool replicas_fence(struct server *server) {
    redisReply *reply = redisCommand(server->link, "WAIT %d 0", server->replicas);
    bool acknowledged = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer >= server->replicas;
    if (reply) freeReplyObject(reply);
    return acknowledged && server_ping(server);
}

/* A clock that all but stands shows when it began. */
bool conductor_calibrate(struct conductor *conductor, int number) {
    struct server *server = &conductor->server[number];
    char text[64];
    if (is_virtual(conductor) || server->clock_fd < 0) return true;
    size_t length = clock_say_rate(0, CALIBRATION_PPM, text, sizeof text);
    bool asked = server_ping(server) && pwrite(server->clock_fd, text, length, 0) == (ssize_t)length;
    redisReply *reply = asked ? redisCommand(server->link, "TIME") : NULL;
    bool told = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    if (told)
        server->start_wall_ns = strtoll(reply->element[0]->str, NULL, 10) * CLOCK_NS_PER_S +
                                strtoll(reply->element[1]->str, NULL, 10) * CLOCK_NS_PER_US;
    if (reply) freeReplyObject(reply);
    /* What it meant to sleep by the other rate, it does not sleep once it is spoken to. */
    return clock_write(conductor, number) && told && server_ping(server);
}

/* The proxy has had to do with whoever listens at this address: has connected to it (`joined`), or has only written. */
static void ping_owe_at(struct conductor *conductor, const char *address, bool joined) {
    for (int each = 0; each < conductor->servers; each++) {
        struct server *server = &conductor->server[each];
        if (strcmp(server->address, address) != 0) continue;
        ping_owe(server, joined ? PINGS_ACCEPTED : PINGS_HEARD);
        return;
    }
    pings_owe(conductor, PINGS_ACCEPTED); /* nobody that is known: it may have to do with everybody */
}

/* The proxy has passed on all that it had received and was free to pass on, and said to whom. */
static bool proxy_settle(struct conductor *conductor) {
    if (!conductor->proxy) return true;
    redisReply *reply = redisCommand(conductor->proxy, "SETTLE TARGETS");
    bool settled = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements % 2 == 1;
    for (size_t each = 1; settled && each < reply->elements; each += 2)
        ping_owe_at(conductor, reply->element[each]->str, reply->element[each + 1]->integer != 0);
    if (reply) freeReplyObject(reply);
    return settled || unanswered(conductor, "the proxy does not answer");
}

static void ping_send(struct server *server) {
    int written = 0;
    if (!server->link) server_connect(server);
    if (!server->link || server->link->err) return;
    redisAppendCommand(server->link, "PING");
    while (!written && redisBufferWrite(server->link, &written) == REDIS_OK) continue;
}

static bool ping_receive(struct server *server) {
    void *pong = NULL;
    if (server->link && !server->link->err && redisGetReply(server->link, &pong) == REDIS_OK && pong)
        return freeReplyObject(pong), true;
    if (server->link) redisFree(server->link);
    server->link = NULL;
    return false;
}

static bool is_asked(const struct server *server) {
    return server->address[0] != '\0' && !server->pid && !server->silent;
}

/* It cannot be asked. */
static bool is_looked_at(const struct server *server) {
    return server->pid && !server->silent;
}

/* All servers at once of which one is due. A connection that turns out to be lost is made anew, once. */
static bool ping_round(struct conductor *conductor) {
    bool asked[SERVERS], used_before[SERVERS];
    for (int each = 0; each < conductor->servers; each++) {
        struct server *server = &conductor->server[each];
        used_before[each] = server->link != NULL;
        asked[each] = is_asked(server) && server->pings_due > 0;
        if (asked[each]) ping_send(server), server->pings_due--;
    }
    for (int each = 0; each < conductor->servers; each++) {
        struct server *server = &conductor->server[each];
        if (asked[each] && !ping_receive(server) && !(used_before[each] && server_ping(server)))
            return unanswered(conductor, "nobody answers a PING at %s", server->address);
    }
    return true;
}

/* Nobody wakes the thread that ends sessions: it wakes by the machine's clock, and then looks at the trial's. */
static bool timer_await(const struct conductor *conductor, struct server *server) {
    int64_t now_ns = conductor_mono_ns(conductor);
    if (!is_virtual(conductor) || server->looked_ns == now_ns) return true;
    if (!server->threads || !timer_await_round(server->threads, FENCE_LIMIT_S * 1000)) return false;
    server->looked_ns = now_ns;
    return true;
}

static bool packets_arrive(struct conductor *conductor) {
    return !conductor->over_tcp || packets_await_rest(FENCE_LIMIT_S * 1000) ||
           unanswered(conductor, "packets do not arrive on this machine");
}

static bool servers_rest(struct conductor *conductor) {
    int pids[SERVERS], count = 0;
    for (int each = 0; each < conductor->servers; each++) {
        struct server *server = &conductor->server[each];
        if (!is_looked_at(server)) continue;
        server->pings_due = 0;
        if (!server->timer) {
            pids[count++] = server->pid;
            continue;
        }
        if (!timer_await(conductor, server))
            return unanswered(conductor, "process %d does not look at its clock", server->pid);
        if (!server->threads || !threads_await_rest(server->threads, REST_LIMIT_S * 1000))
            return unanswered(conductor, "process %d does not come to rest", server->pid);
    }
    return families_await_rest(pids, count, FENCE_LIMIT_S * 1000) ||
           unanswered(conductor, "process %d or its children do not come to rest", pids[0]);
}

/* Everything that the servers had to write, they have written. Who has heard of something only the proxy knows, and
 * only where no server tells another. */
static bool servers_ping(struct conductor *conductor) {
    if (conductor->replicated || !conductor->proxy) pings_owe(conductor, PINGS_ACCEPTED);
    for (int round = 0; round < PINGS_ACCEPTED; round++)
        if (!ping_round(conductor)) return false;
    for (int each = 0; each < conductor->servers; each++) {
        struct server *server = &conductor->server[each];
        bool waited_for = !server->silent && server->busy == 0 && server->replicas > 0;
        if (waited_for && !replicas_fence(server))
            return unanswered(conductor, "the replicas of %s do not acknowledge", server->address);
    }
    return packets_arrive(conductor) && servers_rest(conductor);
}

static bool pings_are_due(const struct conductor *conductor) {
    for (int each = 0; each < conductor->servers; each++) {
        const struct server *server = &conductor->server[each];
        if (server->pings_due > 0 && (is_looked_at(server) || is_asked(server))) return true;
    }
    return false;
}

/* What was sent has been received, what had to be answered has been answered, and the answers have arrived. An answer
 * can make the proxy have to do with a server again: close a connection to it, for instance. Where there are replicas,
 * the proxy always has: they acknowledge what the fence itself makes their master say. */
static bool fence(struct conductor *conductor) {
    if (!packets_arrive(conductor) || !proxy_settle(conductor)) return false;
    do {
        if (!servers_ping(conductor) || !packets_arrive(conductor) || !proxy_settle(conductor)) return false;
    } while (!conductor->replicated && pings_are_due(conductor));
    return true;
}

/* Whoever called may have let something go, or had to do with a server. */
static void unsettle(struct conductor *conductor) {
    conductor->settled = false;
    pings_owe(conductor, PINGS_ACCEPTED);
}

bool conductor_settle(struct conductor *conductor) {
    unsettle(conductor);
    return fence(conductor);
}

/* Nothing has been sent since all was in its place. */
static bool is_settled(const struct conductor *conductor) {
    return conductor->settled &&
           conductor->traffic == atomic_load_explicit(&conductor->stage->traffic, memory_order_acquire);
}

static bool settle(struct conductor *conductor) {
    if (is_settled(conductor)) return true;
    conductor->traffic = atomic_load_explicit(&conductor->stage->traffic, memory_order_acquire);
    conductor->settled = fence(conductor);
    return conductor->settled;
}

/* Before the next turn is given: what the last one sent without waiting for an answer must not be overtaken, which a
 * server that was not looking would do: it hears its connections in an order of its own. Where replies stay away, that
 * is whatever was sent; elsewhere only what may block, and connections that were closed. */
static bool let_arrive(struct conductor *conductor) {
    uint64_t unawaited = atomic_load_explicit(&conductor->stage->unawaited, memory_order_acquire);
    bool overtakes = unawaited != conductor->unawaited;
    conductor->unawaited = unawaited;
    if (!overtakes && !atomic_load_explicit(&conductor->stage->unreliable, memory_order_acquire)) return true;
    return settle(conductor);
}

/* Asks every strand that waits for a server whether its answer has come; those that have it are READY afterwards. */
static enum conductor_result probe_waiting(struct conductor *conductor, int real_limit_ms) {
    bool fenced = false;
    for (int strand = 0; strand < conductor->strands; strand++) {
        if (state_of(conductor, strand) != STRAND_WAITING || is_stopped(conductor, strand)) continue;
        if (!fenced && !settle(conductor)) return CONDUCTOR_STUCK;
        fenced = true;
        give_turn(conductor, strand, STRAND_PROBING);
        enum conductor_result result = await_yield(conductor, real_limit_ms);
        if (result != CONDUCTOR_DONE) return result;
    }
    return CONDUCTOR_DONE;
}

/* Moves the clock to the next deadline, at most to until_ns, and makes ready whom it reaches. */
static enum conductor_result advance(struct conductor *conductor, int64_t until_ns, int64_t late_ns) {
    int64_t next_ns = INT64_MAX, now_ns = conductor_mono_ns(conductor);
    for (int strand = 0; strand < conductor->strands; strand++) {
        enum strand_state state = state_of(conductor, strand);
        if (is_stopped(conductor, strand) || (state != STRAND_SLEEPING && state != STRAND_WAITING)) continue;
        if (deadline_of(conductor, strand) < next_ns) next_ns = deadline_of(conductor, strand);
    }
    int64_t proxy_ns = atomic_load_explicit(&conductor->stage->proxy_deadline_ns, memory_order_acquire);
    if (proxy_ns < next_ns) next_ns = proxy_ns;
    if (next_ns > until_ns) next_ns = until_ns;
    if (next_ns == INT64_MAX) return CONDUCTOR_QUIET;
    if (next_ns > late_ns) return CONDUCTOR_LATE;
    if (next_ns > now_ns && !clock_set(conductor, next_ns)) return CONDUCTOR_FAILED;
    return CONDUCTOR_DONE;
}

/* Whoever's deadline has come wants the turn - once the servers have had the word about the new time. */
static int wake_due(struct conductor *conductor) {
    int woken = 0;
    int64_t now_ns = conductor_mono_ns(conductor);
    for (int strand = 0; strand < conductor->strands; strand++) {
        enum strand_state state = state_of(conductor, strand);
        if (is_stopped(conductor, strand) || (state != STRAND_SLEEPING && state != STRAND_WAITING)) continue;
        if (deadline_of(conductor, strand) > now_ns) continue;
        state_set(conductor, strand, STRAND_READY);
        woken++;
    }
    return woken;
}

static enum conductor_result run_virtual(struct conductor *conductor, const struct awaited *awaited, int64_t until_ns,
                                         int real_limit_ms) {
    int64_t now_ns = conductor_mono_ns(conductor), patience_ns = conductor->patience_ns;
    bool bounded = until_ns != INT64_MAX || patience_ns > INT64_MAX - now_ns;
    int64_t late_ns = bounded ? INT64_MAX : now_ns + patience_ns;
    unsettle(conductor);
    for (;;) {
        enum conductor_result result = await_yield(conductor, real_limit_ms);
        if (result != CONDUCTOR_DONE) return result;
        if (!let_arrive(conductor)) return CONDUCTOR_STUCK;
        if (have_parked(conductor, awaited)) return CONDUCTOR_DONE;
        int ready[STAGE_STRANDS], wanting = list_ready(conductor, ready);
        if (wanting > 0) { /* the only choice of a trial: it comes from the seed */
            uint64_t drawn = wanting > 1 ? random_below(&conductor->random, (uint64_t)wanting) : 0;
            give_turn(conductor, ready[drawn], STRAND_RUNNING);
            continue;
        }
        result = probe_waiting(conductor, real_limit_ms);
        if (result != CONDUCTOR_DONE) return result;
        if (list_ready(conductor, ready) > 0 || wake_due(conductor)) continue;
        if (conductor_mono_ns(conductor) >= until_ns) return CONDUCTOR_TIME;
        result = advance(conductor, until_ns, late_ns);
        if (result != CONDUCTOR_DONE) return result;
    }
}

static enum conductor_result run_real(struct conductor *conductor, const struct awaited *awaited, int64_t until_ns,
                                      int real_limit_ms) {
    int64_t limit_ns = clock_real_mono_ns() + (int64_t)real_limit_ms * CLOCK_NS_PER_MS;
    int ready[STAGE_STRANDS], wanting = list_ready(conductor, ready);
    for (int each = 0; each < wanting; each++) give_turn(conductor, ready[each], STRAND_RUNNING);
    for (;;) {
        if (have_parked(conductor, awaited)) return CONDUCTOR_DONE;
        int64_t now_ns = clock_real_mono_ns(), next_ns = until_ns < limit_ns ? until_ns : limit_ns;
        if (now_ns >= next_ns) return until_ns <= limit_ns ? CONDUCTOR_TIME : CONDUCTOR_STUCK;
        int64_t left_ms = (next_ns - now_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
        enum conductor_result result = await_ring(conductor, left_ms > 1000 ? 1000 : (int)left_ms);
        if (result != CONDUCTOR_DONE && result != CONDUCTOR_STUCK) return result;
    }
}

static enum conductor_result run(struct conductor *conductor, struct awaited awaited, int64_t until_ns,
                                 int real_limit_ms) {
    return (is_virtual(conductor) ? run_virtual : run_real)(conductor, &awaited, until_ns, real_limit_ms);
}

enum conductor_result conductor_run(struct conductor *conductor, const int *awaited, int count, int64_t until_ns,
                                    int real_limit_ms) {
    return run(conductor, (struct awaited){awaited, count, false}, until_ns, real_limit_ms);
}

enum conductor_result conductor_run_to_first(struct conductor *conductor, const int *awaited, int count,
                                             int64_t until_ns, int real_limit_ms) {
    return run(conductor, (struct awaited){awaited, count, true}, until_ns, real_limit_ms);
}

int conductor_dead(const struct conductor *conductor) {
    return conductor->dead;
}

enum strand_state conductor_state(const struct conductor *conductor, int strand) {
    return state_of(conductor, strand);
}

const char *conductor_held_at(const struct conductor *conductor, int strand) {
    return conductor->stage->strands[strand].held_at;
}

struct step_result conductor_result_of(const struct conductor *conductor, int strand) {
    return conductor->stage->strands[strand].result;
}
