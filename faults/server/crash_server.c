/* crash-server: the server's process is killed, and started again when the fault is healed.
 *
 * In between its append-only file is left alone, shortened, or removed with everything else in its directory: that
 * decides what the server remembers. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/common/admin_command.h"
#include "faults/common/process.h"
#include "faults/common/replicas.h"
#include "faults/proxy/resp.h"
#include "faults/server/postgres.h"
#include "harness/scheduler/hang_limit.h"

/* --- the append-only file of a redis-server that is not running --- */

enum { PATH_SIZE = 512 };

struct append_only_cut {
    const char *key;  /* no client uses it */
    const char *last; /* the value that was written to it last */
    const char *left; /* the value that it is to hold instead */
    long lost;        /* how many writes before that one are lost */
    int64_t since_s;  /* in its place, if not 0: all writes from this second on are lost (seconds since 1970) */
};

struct file_bytes {
    char *at;
    size_t length;
};

/* One command of the file, or a transaction. */
struct write_unit {
    size_t begin, end;
    bool is_write; /* no SELECT, no annotation */
};

static bool bytes_read(const char *path, struct file_bytes *bytes) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    if (fstat(fd, &status) < 0) {
        close(fd);
        return false;
    }
    *bytes = (struct file_bytes){.at = malloc((size_t)status.st_size + 1)};
    if (!bytes->at) abort();
    for (ssize_t got; (got = read(fd, bytes->at + bytes->length, (size_t)status.st_size - bytes->length)) > 0;)
        bytes->length += (size_t)got;
    bytes->at[bytes->length] = '\0';
    close(fd);
    return true;
}

/* The manifest names the files in order; the last one with "type i" is written to. */
static bool path_find(const char *directory, char path[PATH_SIZE], struct fault_report *report) {
    struct file_bytes manifest;
    char name[128], type;
    snprintf(path, PATH_SIZE, "%s/appendonlydir/appendonly.aof.manifest", directory);
    if (!bytes_read(path, &manifest)) return fault_fail(report, "%.150s: %.60s", path, strerror(errno));
    bool found = false;
    for (char *rest = NULL, *line = strtok_r(manifest.at, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "file %127s seq %*d type %c", name, &type) != 2 || type != 'i') continue;
        snprintf(path, PATH_SIZE, "%s/appendonlydir/%s", directory, name);
        found = true;
    }
    free(manifest.at);
    return found || fault_fail(report, "the append-only file's manifest names no file that is written to");
}

/* One command, or one line: in the file those are annotations, and the scanner takes them for inline commands. False:
 * it is incomplete. */
static bool command_scan(const struct file_bytes *bytes, size_t at, struct resp_scanner *scanner) {
    size_t used;
    resp_start(scanner, RESP_REQUESTS);
    return resp_scan(scanner, bytes->at + at, bytes->length - at, &used) == RESP_WHOLE;
}

/* The unit that begins at `at`; false: there is no complete one. */
static bool unit_next(const struct file_bytes *bytes, size_t at, struct write_unit *unit) {
    struct resp_scanner command;
    if (!command_scan(bytes, at, &command)) return false;
    *unit = (struct write_unit){.begin = at, .end = at + command.length};
    unit->is_write = command.type == '*' && !resp_word_is(&command.words[0], "SELECT");
    bool inside = unit->is_write && resp_word_is(&command.words[0], "MULTI");
    while (inside && unit->end < bytes->length) {
        if (!command_scan(bytes, unit->end, &command)) return false;
        unit->end += command.length;
        inside = !resp_word_is(&command.words[0], "EXEC");
    }
    return true;
}

/* Counts the writes before the last one that has this value; -1: none has. */
static long writes_before(const struct file_bytes *bytes, const char *value) {
    struct write_unit unit;
    long writes = 0, found = -1;
    for (size_t at = 0; unit_next(bytes, at, &unit); at = unit.end) {
        if (memmem(bytes->at + unit.begin, unit.end - unit.begin, value, strlen(value))) found = writes;
        writes += unit.is_write;
    }
    return found;
}

static size_t write_begin(const struct file_bytes *bytes, long number) {
    struct write_unit unit;
    long writes = 0;
    size_t at = 0;
    for (; unit_next(bytes, at, &unit); at = unit.end)
        if (unit.is_write && writes++ == number) break;
    return at;
}

/* Truncates the file at `end` and appends the write of `left`, in database 0. */
static bool file_end(const char *path, size_t end, const struct append_only_cut *cut) {
    char entry[512];
    int length = snprintf(entry, sizeof entry,
                          "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
                          strlen(cut->key), cut->key, strlen(cut->left), cut->left);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool ended = ftruncate(fd, (off_t)end) == 0 && pwrite(fd, entry, (size_t)length, (off_t)end) == length;
    close(fd);
    return ended;
}

/* Where the writes of a second begin: at its annotation, #TS:SECONDS, or a later one's. `at` is the last one's end, if
 * none is that late. False: there are writes without annotations. */
static bool time_begin(const struct file_bytes *bytes, int64_t since_s, size_t *at) {
    static const char TIME[] = "#TS:";
    struct write_unit unit;
    bool annotated = false;
    for (*at = 0; unit_next(bytes, *at, &unit); *at = unit.end) {
        if (unit.end - unit.begin <= strlen(TIME) || memcmp(bytes->at + unit.begin, TIME, strlen(TIME)) != 0) continue;
        annotated = true;
        if (strtoll(bytes->at + unit.begin + strlen(TIME), NULL, 10) >= since_s) break;
    }
    return annotated || *at == 0;
}

/* Cuts off the write of `last` to the key, all after it and `lost` writes before it (a transaction counts as one), and
 * puts a write of `left` in their place: a server in which the key holds that has loaded everything before. `directory`
 * is the server's, whose setting aof-timestamp-enabled is on where `since_s` is used. False with a sentence, and the
 * file unchanged: there is no file, it has too few writes, or no times. */
static bool append_only_cut(const char *directory, const struct append_only_cut *cut, struct fault_report *report) {
    char path[PATH_SIZE];
    struct file_bytes bytes;
    if (!path_find(directory, path, report)) return false;
    if (!bytes_read(path, &bytes)) return fault_fail(report, "%.150s: %.60s", path, strerror(errno));
    long writes = writes_before(&bytes, cut->last);
    size_t end = !cut->since_s && writes >= cut->lost ? write_begin(&bytes, writes - cut->lost) : 0;
    bool found = !cut->since_s || time_begin(&bytes, cut->since_s, &end);
    free(bytes.at);
    /* A write may wait in the server's memory for up to 2 s while a sync is under way: then it is lost, too. */
    if (writes < 0 && !cut->since_s) return fault_fail(report, "the append-only file does not have the last write");
    if (!found) return fault_fail(report, "the append-only file does not say when its writes were made");
    if (!cut->since_s && writes < cut->lost)
        return fault_fail(report, "the append-only file has %ld writes, %ld were to be lost", writes, cut->lost);
    return file_end(path, end, cut) || fault_fail(report, "%.150s: %.60s", path, strerror(errno));
}

/* --- the fault --- */

enum { LOST_MOST = 1000000, WRITE_LIMIT_MS = 5000, CLUSTER_LIMIT_MS = 60000, POLL_US = 2000, DIRECTORIES_OPEN = 8 };
/* How old a write may be that is not on the disk yet. everysec: a sync is postponed by a second while another one is
 * under way (redis.conf, appendfsync); no: Linux writes out what is 30 s old, and looks every 5 s. The file has the
 * times of its writes in whole seconds, so up to a second more is lost. */
enum { EVERY_SECOND_S = 2, BY_THE_KERNEL_S = 35 };
static const char LAST[] = "lockstorm:last-write", LEFT[] = "lockstorm:end-of-what-is-left";

/* As the choices of the option. */
enum kept_data { DATA_KEPT, DATA_TAIL, DATA_NONE, DATA_CONFIGURED };

struct crash_server_state {
    bool killed;
    enum kept_data kept; /* what data=configured comes to; else the option */
    int64_t since_s;     /* data=configured: the writes from this second on are lost; 0: `lost` tells which */
    int replicas;
    char run_id[48];
};

static bool run_id_read(const struct fault_target *target, char *run_id, size_t size, struct fault_report *report) {
    if (!admin_info_read(target->socket, "server", "run_id", run_id, size, report)) return false;
    return run_id[0] || fault_fail(report, "%s says no run_id", target->name);
}

/* A replica would come back as a master: only its memory knew whom it follows. A sentinel has another role. */
static bool is_master(const struct fault_target *target, struct fault_report *report) {
    char role[16];
    if (!admin_info_read(target->socket, "replication", "role", role, sizeof role, report)) return false;
    return strcmp(role, "master") == 0 ||
           fault_fail(report, "%s is no master, and this fault is for masters", target->name);
}

static bool writes_to_disk(const struct fault_target *target, struct fault_report *report) {
    char appends[8];
    if (!admin_setting_read(target->socket, "appendonly", appends, sizeof appends, report)) return false;
    return strcmp(appends, "yes") == 0 ||
           fault_fail(report, "%s has no append-only file: the trial's persistence is \"none\"", target->name);
}

static bool crash_server_clock_read(const struct fault_target *target, int64_t *now_s, struct fault_report *report) {
    struct admin_reply reply;
    if (!admin_command_ok(target->socket, &reply, report, "TIME")) return false;
    *now_s = strtoll(reply.text, NULL, 10);
    return *now_s > 0 || fault_fail(report, "%s does not tell the time", target->name);
}

/* What a power failure leaves at worst, by the server's own settings. Snapshots do not count: a trial makes none. */
static bool data_configured(struct fault_target *target, struct fault_report *report) {
    struct crash_server_state *state = (void *)target->state;
    char appends[8], syncs[16];
    int64_t now_s;
    if (!admin_setting_read(target->socket, "appendonly", appends, sizeof appends, report) ||
        !admin_setting_read(target->socket, "appendfsync", syncs, sizeof syncs, report) ||
        !crash_server_clock_read(target, &now_s, report))
        return false;
    bool no_file = strcmp(appends, "yes") != 0;
    state->since_s = 0;
    state->kept = no_file ? DATA_NONE : strcmp(syncs, "always") == 0 ? DATA_KEPT : DATA_TAIL;
    if (state->kept == DATA_TAIL)
        state->since_s = now_s - (strcmp(syncs, "everysec") == 0 ? EVERY_SECOND_S : BY_THE_KERNEL_S);
    return true;
}

/* --- its end --- */

/* Removes all files but nodes.conf: what a node knows of its cluster is no data. */
static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status, (void)kind;
    return place->level == 0 || strcmp(path + place->base, "nodes.conf") == 0 ? 0 : remove(path);
}

static bool crash_server_forget(struct fault_target *target, int64_t lost, struct fault_report *report) {
    const struct crash_server_state *state = (void *)target->state;
    const struct probe_key key = fault_probe_key(target);
    const struct append_only_cut cut = {key.text, LAST, LEFT, (long)lost, state->since_s};
    if (state->kept == DATA_KEPT) return true;
    if (state->kept == DATA_TAIL) return append_only_cut(target->directory, &cut, report);
    return nftw(target->directory, remove_entry, DIRECTORIES_OPEN, FTW_DEPTH | FTW_PHYS) == 0 ||
           fault_fail(report, "%.150s: %.60s", target->directory, strerror(errno));
}

static bool write_last(const struct fault_target *target, struct fault_report *report) {
    struct admin_reply reply;
    const struct probe_key key = fault_probe_key(target);
    if (!admin_command_within(target->socket, WRITE_LIMIT_MS, &reply, report, "SET %s %s", key.text, LAST))
        return false;
    return !reply.error || fault_fail(report, "%s refuses writes: %.150s", target->name, reply.text);
}

static bool crash_server_inject(struct fault_target *target, struct fault_report *report) {
    struct crash_server_state *state = (void *)target->state;
    int data = fault_option_choice(target, "data", FAULT_CHOICES("kept", "tail", "none", "configured"), report);
    int64_t lost;
    if (data < 0 || !fault_option_number(target, "lost", 1, LOST_MOST, &lost, report)) return false;
    state->kept = (enum kept_data)data;
    if (is_postgres(target) && data != DATA_KEPT)
        return fault_fail(report, "%s keeps what was committed: data=kept", target->name);
    if (is_postgres(target)) return postgres_crash_inject(target, report);
    if (!is_master(target, report) || (data == DATA_CONFIGURED && !data_configured(target, report))) return false;
    if (state->kept != DATA_NONE && !writes_to_disk(target, report)) return false;
    if (!run_id_read(target, state->run_id, sizeof state->run_id, report)) return false;
    state->replicas = replicas_connected(target->socket, report);
    if (!write_last(target, report)) return false;
    if (state->replicas > 0) replicas_leave(target);
    target->driver->server_silent(target->driver->scheduler, target->server, true);
    state->killed = true;
    if (!process_end(target->pid, report) || !crash_server_forget(target, lost, report)) return false;
    return target->driver->settle(target->driver->scheduler) || fault_fail(report, "not every server answers");
}

/* --- and its return --- */

/* A node of a cluster serves no commands before it has heard of the others. */
static bool cluster_await(const struct fault_target *target, struct fault_report *report) {
    struct admin_reply reply;
    char state[16];
    int64_t until_ns = hang_limit_deadline_ns(CLUSTER_LIMIT_MS);
    do {
        if (!admin_command(target->socket, &reply, report, "CLUSTER INFO")) return false;
        if (!admin_reply_field(&reply, "cluster_state", state, sizeof state) || strcmp(state, "ok") == 0) return true;
    } while (hang_limit_pause(until_ns, POLL_US));
    return fault_fail(report, "%s does not rejoin its cluster", target->name);
}

static bool crash_server_heal(struct fault_target *target, struct fault_report *report) {
    struct crash_server_state *state = (void *)target->state;
    if (is_postgres(target)) return postgres_crash_heal(target, report);
    if (!state->killed) return true;
    if (!target->driver->server_restart(target->server))
        return fault_fail(report, "%s did not start again", target->name);
    state->killed = false;
    target->driver->server_silent(target->driver->scheduler, target->server, false);
    if (!cluster_await(target, report)) return false;
    return state->replicas == 0 || replicas_return(target, state->replicas, report);
}

/* The run_id has changed, and the key is what it should be; then the key is removed. */
static bool crash_server_prove(struct fault_target *target, struct fault_report *report) {
    const struct crash_server_state *state = (void *)target->state;
    char run_id[48];
    struct admin_reply found;
    if (is_postgres(target)) return postgres_crash_prove(target, report);
    const struct probe_key key = fault_probe_key(target);
    if (!run_id_read(target, run_id, sizeof run_id, report)) return false;
    if (!admin_command_ok(target->socket, &found, report, "GET %s", key.text) ||
        !admin_command_ok(target->socket, NULL, report, "DEL %s", key.text))
        return false;
    bool another = strcmp(run_id, state->run_id) != 0;
    snprintf(report->text, sizeof report->text, "run_id %.8s, before %.8s; what was written last is %.60s", run_id,
             state->run_id, found.missing ? "lost" : found.text);
    if (state->kept == DATA_NONE) return another && found.missing;
    return another && strcmp(found.text, state->kept == DATA_KEPT ? LAST : LEFT) == 0;
}

const struct fault FAULT_CRASH_SERVER = {
    .row = &FAULT_ROWS[FAULT_ID_CRASH_SERVER],
    .explanation =
        "The process is killed; healing starts it again at the same address, so the time between the two is the\n"
        "delay of the restart. data=kept: it reads its append-only file (the trial's persistence must be aof).\n"
        "data=tail: the last writes of that file are cut off, as if they had not reached the disk. data=none: it\n"
        "starts empty, and so will its replicas. data=configured: what a power failure leaves at worst by the\n"
        "server's own settings: appendfsync always keeps all; everysec loses the writes of the last 2 s, no those of\n"
        "the last 35 s (aof-timestamp-enabled must be on); without an append-only file everything is lost.\n"
        "Connections, scripts and subscriptions are lost. kill -9 is no power failure: what was handed to the kernel\n"
        "survives it, so with any append-only file the lock would; that is why the fault removes data itself.\n"
        "PostgreSQL can only keep its data and recovers from its log; every session has ended, and with it the locks\n"
        "of sessions and transactions. Not modelled: a replica's crash, a torn file.",
    .target = "server",
    .options = FAULT_OPTIONS(
        {"data", "none",
         "what the server remembers: kept (its append-only file), tail (all but the last writes), none, or configured (what "
         "its settings have brought to the disk for certain)"},
        {"lost", "1", "for data=tail: how many of the last writes are lost; a transaction or a script counts as one"}),
    .moment = FAULT_AFTER_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = crash_server_inject,
    .prove = crash_server_prove,
    .heal = crash_server_heal,
};
