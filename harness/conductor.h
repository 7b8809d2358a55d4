/* The conductor: the driver's side of the stage. In virtual time it gives the turn to one strand at a time, in an order
 * drawn from the trial's seed, and moves the clock to the next deadline when every strand waits and nothing is in
 * flight. In real time it only waits.
 *
 * "Nothing is in flight" is known, not guessed: a strand waits for an ordinary reply while it has the turn, and before
 * the clock moves past one that is allowed to wait (a blocking pop), every server that can have something to say is
 * asked PING - its answer comes after all that the server had to write before - and the strand is asked to look at its
 * socket.
 *
 * A server's clock is a file (preload/clock_page.h). In virtual time it holds the time itself: as a number, which
 * redis-server and ZooKeeper have mapped, and as a line that libfaketime reads at every call of PostgreSQL's, with half
 * a microsecond on top, because the fraction passes through a double on its way and must not fall below the intended
 * microsecond. In real time it holds an offset and a rate, for libfaketime, which counts the rate from the start of the
 * process: so the offset is chosen for the clock to be continuous. */
#ifndef LOCKSTORM_CONDUCTOR_H
#define LOCKSTORM_CONDUCTOR_H

#include <stdint.h>

#include "harness/stage.h"

struct conductor;

enum conductor_result {
    CONDUCTOR_DONE = 0,        /* the awaited strands are parked */
    CONDUCTOR_TIME = 1,        /* the clock has reached until_ns */
    CONDUCTOR_QUIET = 2,       /* nobody can go on and no deadline is left: a deadlock, or all wait for the driver */
    CONDUCTOR_STUCK = 3,       /* a strand kept the turn for real_limit_ms, or somebody did not answer */
    CONDUCTOR_INTERRUPTED = 4, /* a signal came in */
    CONDUCTOR_DIED = 5,        /* a client's process ended: conductor_dead says whose */
    CONDUCTOR_FAILED = 6,      /* a server's clock could not be written */
    CONDUCTOR_LATE = 7,        /* the awaited strands did not come back within the trial's patience */
};

/* On the stage at `path`. NULL with *error. The caller frees with conductor_close. */
struct conductor *conductor_open(const char *path, struct history_error *error);
void conductor_close(struct conductor *conductor);

/* A descriptor that becomes readable when the caller's process has been signalled: a signal that arrives between two
 * waits would go unseen otherwise. It stays the caller's; a run drains it and returns INTERRUPTED. */
void conductor_set_signal_fd(struct conductor *conductor, int fd);

/* In virtual time: how long a run without a bound may last. Nothing else would end it when a watchdog renews for ever
 * what somebody else waits for. Without a call: for ever. */
void conductor_set_patience(struct conductor *conductor, int64_t patience_ns);

/* The eventfd that strands ring; children inherit it. Owned by the conductor. */
int conductor_yield_fd(const struct conductor *conductor);
/* Takes a place on the stage; its number, or -1 if all are taken. */
int conductor_add_strand(struct conductor *conductor);
/* The eventfd of a strand's turn; owned by the conductor. */
int conductor_turn_fd(const struct conductor *conductor, int strand);
/* A process with this strand is about to be started: nobody else runs until it has come on stage. */
void conductor_expect(struct conductor *conductor, int strand);
/* Says which process a strand lives in, once it is started. False with errno. */
bool conductor_watch(struct conductor *conductor, int strand, int pid);
/* The process is gone, as its parent knows: its strands are GONE. */
void conductor_forget(struct conductor *conductor, int pid);
/* A server whose clock is the file at `clock_path` (NULL: it has its own) and which speaks RESP on the unix socket at
 * `socket_path` (NULL: see conductor_set_process); its number, or -1 with *error. Its clock is written at once. */
int conductor_add_server(struct conductor *conductor, const char *clock_path, const char *socket_path,
                         struct history_error *error);
/* The server does not speak RESP and is asked nothing: it has dealt with all that reached it when the process `pid` and
 * its children are at rest. Its socket_path was NULL. */
void conductor_set_process(struct conductor *conductor, int server, int pid);
/* The same server is one process with many threads, one of which acts by its clock without being asked: it has looked
 * at every new time before anybody goes on. `address`: where the proxy reaches it, "host:port", and says that
 * it did: what passes there is none of the other servers' business. */
void conductor_set_timer(struct conductor *conductor, int server, int thread, const char *address);
/* What goes to and from some server goes over TCP, where it can be on its way without anybody knowing. */
void conductor_set_tcp(struct conductor *conductor);
/* So many replicas follow a server (0 when they are cut off): before the clock moves while somebody waits, they must
 * have acknowledged what it had told them, for a WAIT is in flight until then. */
void conductor_set_replicas(struct conductor *conductor, int server, int replicas);
/* Takes the place of a strand whose process has ended for the next process on the same host: its clocks stay. */
void conductor_reuse_strand(struct conductor *conductor, int strand);
/* The server cannot answer, on purpose: it is asked nothing until it can again. Said twice, it takes two that it can.
 */
void conductor_set_silent(struct conductor *conductor, int server, bool silent);
/* Whether the server answers now; from then on the connection for that is there. */
bool conductor_answers(struct conductor *conductor, int server);
/* The server answers at once, but runs nothing (-BUSY), on purpose. */
void conductor_set_busy(struct conductor *conductor, int server, bool busy);
/* Whether it does what it is asked: it is neither silent nor busy. */
bool conductor_server_works(const struct conductor *conductor, int server);
/* The server has started: finds out from when on libfaketime counts a rate. Nothing happens in virtual time, or when it
 * goes by the machine's clock. False: it did not answer. */
bool conductor_calibrate(struct conductor *conductor, int server);
/* From now on a server's wall clock is offset_ns ahead of the trial's and gains drift_ppm. False when its clock could
 * not be written, or when it has none of its own. */
bool conductor_set_clock(struct conductor *conductor, int server, int64_t offset_ns, int64_t drift_ppm);
/* The same for the host of the client that has this strand (its worker). Never false. */
bool conductor_set_host_clock(struct conductor *conductor, int strand, int64_t offset_ns, int64_t drift_ppm);
/* How far a server's clock is ahead now, and how fast that grows. False when it has none of its own. */
bool conductor_clock_error(const struct conductor *conductor, int server, int64_t *offset_ns, int64_t *drift_ppm);
/* The same for the host of a client. Never false. */
bool conductor_host_clock_error(const struct conductor *conductor, int strand, int64_t *offset_ns, int64_t *drift_ppm);
/* The proxy that all links lead through; it is asked SETTLE wherever servers are asked PING. False with *error. */
bool conductor_set_proxy(struct conductor *conductor, const char *control_path, struct history_error *error);
/* From here on replies may stay away. In virtual time a strand then gives the turn back while it waits for one, and
 * after every turn all that is in flight is let arrive before the next is given: the order of messages stays the
 * seed's. */
void conductor_set_unreliable(struct conductor *conductor);
/* What a server's wall clock should show, in us since 1970. */
int64_t conductor_server_wall_us(const struct conductor *conductor, int server);
/* What a client's wall clock shows, and how far its monotonic clock has come; ns. */
int64_t conductor_host_wall_ns(const struct conductor *conductor, int strand);
int64_t conductor_host_mono_ns(const struct conductor *conductor, int strand);
/* Until when (by its host's monotonic clock) the lock told this client to believe; 0: it said nothing. */
int64_t conductor_host_validity_ns(const struct conductor *conductor, int strand);

/* Gives a parked worker its next step. It begins with the next conductor_run, in real time too, so that a checkpoint
 * can be armed before anything has passed it. */
void conductor_step(struct conductor *conductor, int strand, const struct step *step);
/* Lets a strand that is held at a checkpoint go on. */
void conductor_continue(struct conductor *conductor, int strand);
/* Holds a strand at the n-th passage of a checkpoint (STAGE_ANYWHERE: of any) from now on (1: the next one); 0 disarms.
 */
void conductor_arm(struct conductor *conductor, int strand, const char *checkpoint, uint32_t nth);
/* The strand's workload is done when one more turn has been granted, however many or long it was to be. */
void conductor_wind_down(struct conductor *conductor, int strand);
/* A whole process was stopped, or may go on: its strands get no turn meanwhile. Several may have a reason to stop it;
 * the number of those that are left. */
int conductor_set_stopped(struct conductor *conductor, int pid, bool stopped);
/* Virtual time: returns when a process that had been stopped has dealt with what had waited for it, and its children
 * have. In real time at once. */
void conductor_catch_up(const struct conductor *conductor, int pid);
/* A client's worker alone gets no turn: its watchdog goes on. In real time it stands where it next looks: when it has
 * slept or waited, or at a checkpoint. The number of reasons that are left, as above. */
int conductor_set_stalled(struct conductor *conductor, int strand, bool stalled);
/* Whether a strand that was stalled stands, and how often it went on so far. */
bool conductor_stands(const struct conductor *conductor, int strand);
uint64_t conductor_moves(const struct conductor *conductor, int strand);
/* Stops the process of a strand, a child of the caller, so that it stands between two records: whoever ends it, or
 * reads the history to its end, finds none half written. True when it stands; false: it has ended, or is in the middle
 * of one for a second. The stop is nobody's reason (conductor_set_stopped). */
bool conductor_stop_between_records(struct conductor *conductor, int strand);
/* The monotonic clock of this client's host stands from true to false, while the trial's goes on. The process is
 * stopped meanwhile (conductor_set_stopped is the caller's). The number of reasons that are left, as above. */
int conductor_set_suspended(struct conductor *conductor, int strand, bool suspended);

/* Lets everything arrive that is in flight and that nobody holds. False: a server, or the proxy, did not answer. */
bool conductor_settle(struct conductor *conductor);
/* Who did not answer, or come to rest, when that failed for the last time; "": it never has. */
const char *conductor_unanswered(const struct conductor *conductor);

/* Runs the trial until every strand of `awaited` (an array of `count` numbers) is parked, the clock reaches until_ns
 * (INT64_MAX: no bound), or one of the other results. With count 0 it runs until until_ns. real_limit_ms bounds how
 * long one strand may keep the turn; in real time, the whole call. */
enum conductor_result conductor_run(struct conductor *conductor, const int *awaited, int count, int64_t until_ns,
                                    int real_limit_ms);
/* The same until the first of them is parked. */
enum conductor_result conductor_run_to_first(struct conductor *conductor, const int *awaited, int count,
                                             int64_t until_ns, int real_limit_ms);
int conductor_dead(const struct conductor *conductor);

/* Looking at a strand between runs. */
enum strand_state conductor_state(const struct conductor *conductor, int strand);
const char *conductor_held_at(const struct conductor *conductor, int strand);
struct step_result conductor_result_of(const struct conductor *conductor, int strand);
int64_t conductor_mono_ns(const struct conductor *conductor);
int64_t conductor_wall_ns(const struct conductor *conductor);

#endif
