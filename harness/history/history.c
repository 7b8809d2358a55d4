#include "harness/history/history.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the history is a little-endian file"
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static const char MAGIC[8] = "lckstorm";

/* The settings and the counters are in different cache lines, so that readers of the first do not wait for the second.
 * By padding, not by alignment, which a history in memory (history_reader_memory) need not have. */
struct header {
    char magic[8];
    uint32_t version;
    uint32_t record_size;
    uint64_t capacity;
    uint64_t seed;
    uint32_t time;
    uint32_t reserved[7];
    _Atomic uint64_t next; /* next free slot; may pass capacity */
    uint64_t apart[7];
    _Atomic uint32_t ended;
};
_Static_assert(offsetof(struct header, next) == 64 && offsetof(struct header, ended) == 128, "a line each");
_Static_assert(sizeof(struct header) <= HISTORY_HEADER_SIZE, "the header fits its page");

enum { STRETCH_RECORDS = 1 << 18 }; /* 16 MiB, whole pages of it */
/* The longest history that need not be reserved as a whole, the part of it that is reserved at least, and the memory
 * that must then be free. */
enum { SHORT_RECORDS = 1 << 16, RESERVED_RECORDS = 1 << 12, ROOMY_BYTES = 256 << 20 };

struct history {
    struct header *header;
    struct history_record *records;
    size_t bytes;
};

struct history_reader {
    const struct header *header;
    const struct history_record *records;
    uint64_t slots; /* for which the file or memory has room */
    uint64_t cursor;
    uint64_t released; /* the first slots, whose pages have been given back to the kernel */
    size_t bytes;
    bool mapped;
    char *text;
};

bool history_fail(struct history_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

bool history_fail_damaged(struct history_error *error, const char *path, uint64_t index) {
    return history_fail(error, "%.120s: damaged record %llu at byte %llu: its content does not match its checksum",
                        path, (unsigned long long)index,
                        (unsigned long long)(HISTORY_HEADER_SIZE + index * HISTORY_RECORD_SIZE));
}

/* Returns NULL, which is false as well, for a `return history_refuse(...)`. */
static void *history_refuse(struct history_error *error, const char *path, const char *what) {
    history_fail(error, "%.160s: %s", path, what);
    return NULL;
}

/* One of the eight words of a record. */
static inline uint64_t word(const struct history_record *record, int number) {
    uint64_t value;
    memcpy(&value, (const char *)record + number * (int)sizeof value, sizeof value);
    return value;
}

/* Two words mixed into 128 bits (the mixing step of wyhash, public domain by Wang Yi). */
static inline __uint128_t history_mix(uint64_t left, uint64_t right) {
    return (__uint128_t)left * right;
}

static inline uint32_t checksum_of(const struct history_record *record, uint64_t index) {
    uint64_t first = (word(record, 0) >> 32 << 32) ^ index; /* without the checksum itself */
    __uint128_t mixed = history_mix(first ^ 0xa0761d6478bd642fu, word(record, 1) ^ 0xe7037ed1a0b428dbu);
    mixed ^= history_mix(word(record, 2) ^ 0x8ebc6af09c88c6e3u, word(record, 3) ^ 0x589965cc75374cc3u);
    mixed ^= history_mix(word(record, 4) ^ 0x1d8e4e27c47d124fu, word(record, 5) ^ 0xeb44accab455d165u);
    mixed ^= history_mix(word(record, 6) ^ 0x9fb21c651e98df25u, word(record, 7) ^ 0xbe4ba423396cfeb9u);
    uint64_t hash = (uint64_t)mixed ^ (uint64_t)(mixed >> 64);
    uint32_t checksum = (uint32_t)(hash ^ (hash >> 32));
    return checksum ? checksum : 1;
}

uint32_t history_checksum(const struct history_record *record, uint64_t index) {
    return checksum_of(record, index);
}

/* --- writing --- */

void history_header_fill(void *bytes, const struct history_settings *settings, uint64_t count) {
    struct header header = {.version = HISTORY_VERSION,
                            .record_size = HISTORY_RECORD_SIZE,
                            .capacity = settings->capacity,
                            .seed = settings->seed,
                            .time = (uint32_t)settings->time};
    memcpy(header.magic, MAGIC, sizeof header.magic);
    atomic_init(&header.next, count);
    atomic_init(&header.ended, count != 0);
    memset(bytes, 0, HISTORY_HEADER_SIZE);
    memcpy(bytes, &header, sizeof header);
}

/* In memory, and with room for many histories. */
static bool is_in_roomy_memory(int fd) {
    struct statfs there;
    return fstatfs(fd, &there) == 0 && there.f_type == TMPFS_MAGIC &&
           there.f_bavail * (uint64_t)there.f_bsize >= ROOMY_BYTES;
}

/* Reserves the room for the records, so that no writer finds the disk full. In memory that takes as long as writing
 * them. A scripted trial has a short history, and seldom leaves its first part: where memory is not scarce only this
 * part is reserved. Returns 0 or an errno. */
static int reserve_records(int fd, uint64_t capacity) {
    off_t bytes = (off_t)(HISTORY_HEADER_SIZE + capacity * HISTORY_RECORD_SIZE);
    if (capacity > RESERVED_RECORDS && capacity <= SHORT_RECORDS && is_in_roomy_memory(fd)) {
        if (ftruncate(fd, bytes) != 0) return errno;
        bytes = HISTORY_HEADER_SIZE + (off_t)RESERVED_RECORDS * HISTORY_RECORD_SIZE;
    }
    return posix_fallocate(fd, 0, bytes);
}

bool history_create(const char *path, const struct history_settings *settings, struct history_error *error) {
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return history_refuse(error, path, strerror(errno));
    char header[HISTORY_HEADER_SIZE];
    history_header_fill(header, settings, 0);
    int full = reserve_records(fd, settings->capacity);
    bool written = !full && pwrite(fd, &header, sizeof header, 0) == (ssize_t)sizeof header;
    int reason = full ? full : errno;
    close(fd);
    if (written) return true;
    unlink(path);
    return history_refuse(error, path, strerror(reason));
}

struct history *history_open(const char *path, struct history_error *error) {
    struct history_reader *reader = history_reader_open(path, error); /* one place that validates */
    if (!reader) return NULL;
    uint64_t capacity = reader->header->capacity;
    bool whole = reader->slots == capacity;
    history_reader_close(reader);
    if (!whole) return history_refuse(error, path, "a saved history: it can be read, not appended to");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return history_refuse(error, path, strerror(errno));
    size_t bytes = HISTORY_HEADER_SIZE + capacity * HISTORY_RECORD_SIZE;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int reason = errno;
    close(fd);
    if (map == MAP_FAILED) return history_refuse(error, path, strerror(reason));
    struct history *history = malloc(sizeof *history);
    if (!history) abort();
    *history = (struct history){
        .header = map, .records = (struct history_record *)((char *)map + HISTORY_HEADER_SIZE), .bytes = bytes};
    return history;
}

void history_prefault(struct history *history) {
    /* Best effort: an older kernel answers EINVAL and the pages come one fault at a time. */
    (void)madvise(history->header, history->bytes, MADV_POPULATE_WRITE);
}

/* The caller owns slot `index`; readers see the record when its checksum appears. */
static void history_publish(struct history *history, uint64_t index, const struct history_record *record) {
    struct history_record *slot = &history->records[index];
    uint32_t checksum = history_checksum(record, index);
    memcpy((char *)slot + sizeof slot->checksum, (const char *)record + sizeof record->checksum,
           sizeof *record - sizeof record->checksum);
    __atomic_store_n(&slot->checksum, checksum, __ATOMIC_RELEASE);
}

uint64_t history_append(struct history *history, const struct history_record *record) {
    uint64_t index = atomic_fetch_add_explicit(&history->header->next, 1, memory_order_acq_rel);
    if (index >= history->header->capacity) return HISTORY_FULL;
    history_publish(history, index, record);
    return index;
}

uint32_t history_text(struct history *history, const void *bytes, size_t length, int64_t mono_ns, int64_t wall_ns) {
    if (length > HISTORY_TEXT_MAX) return 0;
    if (atomic_load_explicit(&history->header->next, memory_order_relaxed) == 0) /* index 0 means: no name */
        history_append(history, &(struct history_record){.kind = HISTORY_NOTE, .mono_ns = mono_ns, .wall_ns = wall_ns});
    size_t chunks = (length + HISTORY_TEXT_CHUNK - 1) / HISTORY_TEXT_CHUNK;
    uint64_t first = atomic_fetch_add_explicit(&history->header->next, chunks + 1, memory_order_acq_rel);
    if (first + chunks >= history->header->capacity || first + chunks > UINT32_MAX) return 0;
    for (size_t chunk = 0; chunk < chunks; chunk++) {
        struct history_record more = {.kind = HISTORY_TEXT_MORE};
        size_t offset = chunk * HISTORY_TEXT_CHUNK, left = length - offset;
        memcpy(&more.actor, (const char *)bytes + offset, left < HISTORY_TEXT_CHUNK ? left : HISTORY_TEXT_CHUNK);
        history_publish(history, first + 1 + chunk, &more);
    }
    struct history_record text = {
        .kind = HISTORY_TEXT, .mono_ns = mono_ns, .wall_ns = wall_ns, .value = (int64_t)length};
    history_publish(history, first, &text); /* last: a reader that sees the head sees all chunks */
    return (uint32_t)first;
}

uint64_t history_count(const struct history *history) {
    uint64_t next = atomic_load_explicit(&history->header->next, memory_order_acquire);
    return next < history->header->capacity ? next : history->header->capacity;
}

void history_rewind(struct history *history, uint64_t count) {
    uint64_t used = history_count(history);
    if (count < used) memset(&history->records[count], 0, (used - count) * sizeof *history->records);
    atomic_store_explicit(&history->header->next, count, memory_order_release);
    atomic_store_explicit(&history->header->ended, 0, memory_order_release);
}

void history_end(struct history *history) {
    atomic_store_explicit(&history->header->ended, 1, memory_order_release);
}

void history_close(struct history *history) {
    if (!history) return;
    munmap(history->header, history->bytes);
    free(history);
}

/* --- reading --- */

/* NULL when the header is valid, otherwise what is wrong with it. */
static const char *header_fault(const struct header *header, size_t bytes) {
    if (bytes < HISTORY_HEADER_SIZE) return "not a history: shorter than a header (4096 bytes)";
    if (memcmp(header->magic, MAGIC, sizeof header->magic) != 0) return "not a history: byte 0 does not start a header";
    if (header->version != HISTORY_VERSION) return "a history of another version (byte 8)";
    if (header->record_size != HISTORY_RECORD_SIZE) return "damaged header: record size (byte 12)";
    if (header->time != HISTORY_TIME_VIRTUAL && header->time != HISTORY_TIME_REAL)
        return "damaged header: kind of time (byte 32)";
    uint64_t slots = (bytes - HISTORY_HEADER_SIZE) / HISTORY_RECORD_SIZE;
    uint64_t next = atomic_load_explicit(&header->next, memory_order_acquire);
    uint64_t used = next < header->capacity ? next : header->capacity;
    if ((bytes - HISTORY_HEADER_SIZE) % HISTORY_RECORD_SIZE) return "cut short: it ends in the middle of a record";
    if (slots > header->capacity) return "damaged header: capacity (byte 16) is smaller than the file";
    if (slots < used) return "cut short: the header counts more records than the file holds";
    /* A slot is counted before it is published, so no slot behind the last counted one is in use. */
    const struct history_record *records = (const void *)((const char *)header + HISTORY_HEADER_SIZE);
    bool more = next < slots && __atomic_load_n(&records[next].checksum, __ATOMIC_ACQUIRE) != 0;
    if (more && atomic_load_explicit(&header->next, memory_order_acquire) == next)
        return "damaged header: the file holds more records than it counts (byte 64)";
    return NULL;
}

static struct history_reader *reader_new(const void *bytes, size_t length, bool mapped) {
    struct history_reader *reader = calloc(1, sizeof *reader);
    if (!reader) abort();
    reader->header = bytes;
    reader->records = (const struct history_record *)((const char *)bytes + HISTORY_HEADER_SIZE);
    reader->slots = (length - HISTORY_HEADER_SIZE) / HISTORY_RECORD_SIZE;
    reader->bytes = length;
    reader->mapped = mapped;
    return reader;
}

struct history_reader *history_reader_memory(const void *bytes, size_t length, struct history_error *error) {
    const char *fault = header_fault(bytes, length);
    if (fault) return history_refuse(error, "memory", fault);
    return reader_new(bytes, length, false);
}

struct history_reader *history_reader_open(const char *path, struct history_error *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return history_refuse(error, path, strerror(errno));
    struct history_reader *reader = history_reader_map(fd, path, error);
    close(fd);
    return reader;
}

struct history_reader *history_reader_map(int fd, const char *path, struct history_error *error) {
    struct stat stat;
    if (fstat(fd, &stat) < 0) return history_refuse(error, path, strerror(errno));
    if (!S_ISREG(stat.st_mode)) return history_refuse(error, path, strerror(S_ISDIR(stat.st_mode) ? EISDIR : EINVAL));
    size_t bytes = (size_t)stat.st_size;
    if (bytes < HISTORY_HEADER_SIZE) return history_refuse(error, path, header_fault(NULL, bytes));
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return history_refuse(error, path, strerror(errno));
    const char *fault = header_fault(map, bytes);
    if (!fault) return reader_new(map, bytes, true);
    munmap(map, bytes);
    return history_refuse(error, path, fault);
}

uint64_t history_reader_count(const struct history_reader *reader) {
    uint64_t next = atomic_load_explicit(&reader->header->next, memory_order_acquire);
    return next < reader->slots ? next : reader->slots;
}

uint64_t history_reader_dropped(const struct history_reader *reader) {
    uint64_t next = atomic_load_explicit(&reader->header->next, memory_order_acquire);
    return next > reader->header->capacity ? next - reader->header->capacity : 0;
}

/* Copies the slot if it is published. The checksum is read first: a live writer stores it last. */
static enum history_state slot_read(const struct history_reader *reader, uint64_t index,
                                    struct history_record *record) {
    const struct history_record *slot = &reader->records[index];
    uint32_t checksum = __atomic_load_n(&slot->checksum, __ATOMIC_ACQUIRE);
    if (checksum == 0) return HISTORY_TORN;
    *record = *slot;
    if (checksum != history_checksum(record, index)) return HISTORY_DAMAGED;
    return HISTORY_RECORD;
}

/* After each stretch gives all records behind a mapped reader back to the kernel; reading them again finds them in the
 * file. Also those that were given back before: one look at an earlier record brings back the pages around it, up to
 * 2 MiB of them. */
static void release_behind(struct history_reader *reader) {
    if (!reader->mapped || reader->cursor < reader->released + STRETCH_RECORDS) return;
    reader->released += STRETCH_RECORDS;
    madvise((char *)(uintptr_t)reader->header, (size_t)reader->released * HISTORY_RECORD_SIZE, MADV_DONTNEED);
}

enum history_state history_reader_next(struct history_reader *reader, bool follow, struct history_record *record) {
    /* `ended` is read first: what was appended before the end is then counted. */
    bool live = follow && !atomic_load_explicit(&reader->header->ended, memory_order_acquire);
    if (reader->cursor >= history_reader_count(reader)) return live ? HISTORY_WAIT : HISTORY_END;
    enum history_state state = slot_read(reader, reader->cursor, record);
    if (state == HISTORY_TORN && live) return HISTORY_WAIT;
    reader->cursor++;
    release_behind(reader);
    return state;
}

uint64_t history_reader_batch(struct history_reader *reader, const struct history_record **records) {
    uint64_t first = reader->cursor, end = history_reader_count(reader), index = first;
    const struct history_record *slots = reader->records;
    release_behind(reader);
    if (end > first + HISTORY_BATCH) end = first + HISTORY_BATCH;
    for (; index < end; index++) {
        uint32_t checksum = __atomic_load_n(&slots[index].checksum, __ATOMIC_ACQUIRE);
        if (checksum == 0 || checksum != checksum_of(&slots[index], index)) break;
    }
    *records = slots + first;
    reader->cursor = index;
    return index - first;
}

bool history_reader_at(const struct history_reader *reader, uint64_t index, struct history_record *record) {
    return index < history_reader_count(reader) && slot_read(reader, index, record) == HISTORY_RECORD;
}

uint64_t history_reader_index(const struct history_reader *reader) {
    return reader->cursor ? reader->cursor - 1 : 0;
}

void history_reader_rewind(struct history_reader *reader) {
    reader->cursor = reader->released = 0;
}

/* Whether a record is a chunk of a text as history_text writes it: `used` bytes, and zeros behind the last. */
static bool is_chunk(const struct history_record *record, size_t used) {
    const char *payload = (const char *)record + (HISTORY_RECORD_SIZE - HISTORY_TEXT_CHUNK);
    if (record->kind != HISTORY_TEXT_MORE || record->outcome || record->object || record->flags) return false;
    while (used < HISTORY_TEXT_CHUNK && payload[used] == 0) used++;
    return used >= HISTORY_TEXT_CHUNK;
}

const char *history_reader_text(struct history_reader *reader, uint32_t index, size_t *length) {
    struct history_record record;
    uint64_t count = history_reader_count(reader);
    if (index >= count || slot_read(reader, index, &record) != HISTORY_RECORD) return NULL;
    if (record.kind != HISTORY_TEXT || record.value < 0 || record.value > HISTORY_TEXT_MAX) return NULL;
    size_t bytes = (size_t)record.value, chunks = (bytes + HISTORY_TEXT_CHUNK - 1) / HISTORY_TEXT_CHUNK;
    if (index + chunks >= count) return NULL;
    char *text = realloc(reader->text, chunks * HISTORY_TEXT_CHUNK + 1);
    if (!text) abort();
    reader->text = text;
    for (size_t chunk = 0; chunk < chunks; chunk++) {
        if (slot_read(reader, index + 1 + chunk, &record) != HISTORY_RECORD) return NULL;
        if (!is_chunk(&record, bytes - chunk * HISTORY_TEXT_CHUNK)) return NULL;
        memcpy(text + chunk * HISTORY_TEXT_CHUNK, &record.actor, HISTORY_TEXT_CHUNK);
    }
    text[bytes] = '\0';
    *length = bytes;
    return text;
}

const char *history_name(struct history_reader *reader, uint32_t index, char *buffer, size_t size) {
    size_t length, used = 0;
    const char *text = index ? history_reader_text(reader, index, &length) : NULL;
    if (!text) {
        snprintf(buffer, size, "#%u", index);
        return buffer;
    }
    for (size_t each = 0; each < length && used + 5 < size; each++) {
        unsigned char byte = (unsigned char)text[each];
        if (byte < 128 && isprint(byte)) buffer[used++] = (char)byte;
        else used += (size_t)snprintf(buffer + used, size - used, "\\x%02x", byte);
    }
    buffer[used] = '\0';
    return buffer;
}

struct history_settings history_reader_settings(const struct history_reader *reader) {
    return (struct history_settings){.time = (enum history_time)reader->header->time,
                                     .seed = reader->header->seed,
                                     .capacity = reader->header->capacity};
}

void history_reader_close(struct history_reader *reader) {
    if (!reader) return;
    if (reader->mapped) munmap((void *)(uintptr_t)reader->header, reader->bytes);
    free(reader->text);
    free(reader);
}

static bool write_all(int fd, const void *from, size_t left) {
    const char *bytes = from;
    while (left > 0) {
        ssize_t written = write(fd, bytes, left);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes += written;
        left -= (size_t)written;
    }
    return true;
}

bool history_save(const char *from, const char *to, struct history_error *error) {
    struct history_reader *reader = history_reader_open(from, error);
    if (!reader) return false;
    /* The counter is read once, so that a writer that is still at work cannot make the copy look cut short. */
    union {
        char page[HISTORY_HEADER_SIZE];
        struct header header;
    } copy;
    memcpy(copy.page, reader->header, sizeof copy.page);
    uint64_t count = atomic_load_explicit(&copy.header.next, memory_order_relaxed);
    if (count > reader->slots) count = reader->slots;
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    bool good = fd >= 0 && write_all(fd, copy.page, sizeof copy.page) &&
                write_all(fd, reader->records, count * HISTORY_RECORD_SIZE);
    int reason = errno;
    if (fd >= 0 && close(fd) < 0 && good) {
        good = false;
        reason = errno;
    }
    if (!good && fd >= 0) unlink(to);
    history_reader_close(reader);
    return good || history_refuse(error, to, strerror(reason));
}

static const char *const KIND_NAMES[HISTORY_KIND_COUNT] = {
    [HISTORY_TEXT] = "text",
    [HISTORY_TEXT_MORE] = "text-more",
    [HISTORY_PARAMETER] = "parameter",
    [HISTORY_LOCK_OPEN] = "lock-open",
    [HISTORY_ACQUIRE_INVOKE] = "acquire-invoke",
    [HISTORY_ACQUIRE_RETURN] = "acquire-return",
    [HISTORY_RENEW_INVOKE] = "renew-invoke",
    [HISTORY_RENEW_RETURN] = "renew-return",
    [HISTORY_RELEASE_INVOKE] = "release-invoke",
    [HISTORY_RELEASE_RETURN] = "release-return",
    [HISTORY_READ_INVOKE] = "read-invoke",
    [HISTORY_READ_RETURN] = "read-return",
    [HISTORY_WRITE_INVOKE] = "write-invoke",
    [HISTORY_WRITE_RETURN] = "write-return",
    [HISTORY_STORE_READ] = "store-read",
    [HISTORY_STORE_WRITE] = "store-write",
    [HISTORY_FAULT_INJECT] = "fault-inject",
    [HISTORY_FAULT_PROVE] = "fault-prove",
    [HISTORY_FAULT_HEAL] = "fault-heal",
    [HISTORY_CHECKPOINT] = "checkpoint",
    [HISTORY_CLOCK] = "clock",
    [HISTORY_ACTOR_EXIT] = "actor-exit",
    [HISTORY_NOTE] = "note",
    [HISTORY_VALIDITY] = "validity",
    [HISTORY_RULE] = "rule",
    [HISTORY_RELEASED] = "released",
    [HISTORY_PHASE] = "phase",
    [HISTORY_SERVER_RENEWAL] = "server-renewal",
    [HISTORY_ANSWERS] = "answers",
    [HISTORY_IS_HELD] = "is-held",
    [HISTORY_RESIDUE] = "residue",
};

const char *history_kind_name(unsigned kind) {
    return kind < HISTORY_KIND_COUNT ? KIND_NAMES[kind] : NULL;
}

const char *history_object_name(unsigned object) {
    static const char *const names[HISTORY_OBJECT_COUNT] = {
        [HISTORY_OBJECT_REGISTER] = "register", [HISTORY_OBJECT_COUNTER] = "counter", [HISTORY_OBJECT_SET] = "set"};
    return object < HISTORY_OBJECT_COUNT ? names[object] : NULL;
}
