#include "faults/server/append_only.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/proxy/resp.h"

enum { PATH_SIZE = 512 };

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

bool append_only_cut(const char *directory, const struct append_only_cut *cut, struct fault_report *report) {
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
