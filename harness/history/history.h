/* The history of one trial: a file that every process of the trial maps and appends to.
 *
 * A page-sized header is followed by 64-byte records. An append reserves a slot with one atomic addition and then
 * publishes the record by storing its checksum last. The slot numbers are therefore one total order over all processes,
 * and a record that is appended after its writer has learned of another one has the larger number. Checkers use that
 * order (the *index*), never the stamps: two processes that append at once may stamp in the opposite order.
 *
 * A slot that was reserved and never published, because its writer was killed in between, is *torn*; one whose checksum
 * does not fit its content and place is *damaged*. The kernel keeps the mapped pages, so SIGKILL of a writer loses
 * nothing that was published.
 *
 * The file is in the machine's byte order (little-endian; the build refuses others). harness/history/history_json.h
 * converts it to and from JSON Lines.
 *
 * Sources: the shape of a Jepsen history (jepsen.history: invocations and completions in one order); the reservation
 * by fetch-and-add is that of a LMAX-style multi-producer ring without its wrap-around. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/history/outcome.h"

enum history_time {
    HISTORY_TIME_VIRTUAL = 1, /* stamps are the trial's own clock, which only the trial moves */
    HISTORY_TIME_REAL = 2,    /* stamps are CLOCK_MONOTONIC, unaffected by clock faults */
};

/* The meaning of a record. "Invoke" is appended before an operation is sent, "return" after it came back. Numbers are
 * part of the file format: append, never renumber. See docs/history.md for the meaning of each field per kind. */
enum history_kind {
    HISTORY_NONE = 0,
    HISTORY_TEXT = 1,           /* a name or note: value = length in bytes, the bytes follow in HISTORY_TEXT_MORE */
    HISTORY_TEXT_MORE = 2,      /* 56 payload bytes in place of every field after the first eight bytes */
    HISTORY_PARAMETER = 3,      /* name = text of the key, value = number or index of a text (flag TEXT) */
    HISTORY_LOCK_OPEN = 4,      /* name = resource, value = lease in ms (0: none), extra = traits, token = permits */
    HISTORY_ACQUIRE_INVOKE = 5, /* value = wait in ms, -1: for ever */
    /* token; value = stamp of the end of the client's own validity, 0: until release; extra = stamp before which it was
     * not granted, 0: that of its ACQUIRE_INVOKE */
    HISTORY_ACQUIRE_RETURN = 6,
    HISTORY_RENEW_INVOKE = 7,
    HISTORY_RENEW_RETURN = 8,
    HISTORY_RELEASE_INVOKE = 9,
    HISTORY_RELEASE_RETURN = 10,
    HISTORY_READ_INVOKE = 11,
    HISTORY_READ_RETURN = 12,  /* value read, extra = version read */
    HISTORY_WRITE_INVOKE = 13, /* value, extra = version it is based on, -1: blind */
    HISTORY_WRITE_RETURN = 14, /* value, extra = version after it */
    HISTORY_STORE_READ = 15,   /* by the store: name = client, value, extra = version */
    HISTORY_STORE_WRITE = 16,  /* by the store: name = client, value, extra = version it is based on, -1: blind */
    HISTORY_FAULT_INJECT = 17, /* by the driver: name = fault, value = index of the target's name */
    HISTORY_FAULT_PROVE = 18,  /* outcome OK: the fault was seen to be in effect */
    HISTORY_FAULT_HEAL = 19,
    HISTORY_CHECKPOINT = 20, /* a client was held here: name = checkpoint */
    HISTORY_CLOCK = 21,      /* the trial's clock now stands at value (ns); OK: read back from every server */
    HISTORY_ACTOR_EXIT = 22, /* by the driver: name = actor that has ended, value = wait status */
    HISTORY_NOTE = 23,       /* name = text */
    HISTORY_VALIDITY = 24,   /* announced by the lock: value = stamp of its end; REFUSED: the lock is lost */
    /* By the proxy: rule `name` fired; value = bytes of the message, 0 for raw bytes, extra = index of the link's
     * name, op = n. */
    HISTORY_RULE = 25,
    HISTORY_RELEASED =
        26,             /* by the proxy: what rule `name` had held is passed on; value = bytes, extra = link, op = n */
    HISTORY_PHASE = 27, /* by the driver: the phase `name` ("storm", "quiet") begins */
    HISTORY_SERVER_RENEWAL = 28, /* a server has executed a command with which its client renews; docs/history.md */
    /* What the lock's servers answered to one request: extra = enum env_asked, value = a digit for each server asked,
     * 0: it does not say which; outcome = what the lock makes of it */
    HISTORY_ANSWERS = 29,
    HISTORY_IS_HELD = 30, /* the lock says whether its client holds it */
    HISTORY_RESIDUE = 32, /* by the driver, at the end: value = number of `name` that were left behind */
    HISTORY_KIND_COUNT
};

enum history_object {
    HISTORY_OBJECT_NONE = 0,
    HISTORY_OBJECT_REGISTER = 1,
    HISTORY_OBJECT_COUNTER = 2,
    HISTORY_OBJECT_SET = 3,
    HISTORY_OBJECT_COUNT
};

enum history_flag {
    HISTORY_FLAG_TEXT = 1,       /* PARAMETER: value is the index of a text */
    HISTORY_FLAG_ATOMIC = 2,     /* STORE_WRITE: the store itself added to the value, so no update can be lost */
    HISTORY_FLAG_FENCED = 4,     /* STORE_*: refused by the rule of the store's mode */
    HISTORY_FLAG_MADE = 8,       /* SERVER_RENEWAL: it made a key that was not there */
    HISTORY_FLAG_MARKED = 16,    /* SERVER_RENEWAL: the key that lives for `value` ms bears the client's mark */
    HISTORY_FLAG_PROLONGED = 32, /* SERVER_RENEWAL: that key had a lease or less to live, and now longer */
};

/* One record. actor, name: index of the HISTORY_TEXT record that holds the name, 0: none (slot 0 is never a name).
 * op: number of the operation among its actor's, joins its invoke, its return and the store's record. grant: index of
 * the ACQUIRE_RETURN record under which this happens, 0: none; a larger grant is a later one. */
struct history_record {
    uint32_t checksum; /* of the rest and the index; written last; 0 while unpublished */
    uint8_t kind;
    uint8_t outcome;
    uint8_t object;
    uint8_t flags;
    uint32_t actor;
    uint32_t name;
    int64_t mono_ns; /* the trial's monotonic time (virtual), or CLOCK_MONOTONIC (real) */
    int64_t wall_ns; /* what the actor's own wall clock showed, ns since 1970 */
    uint32_t op;
    uint32_t grant;
    int64_t token; /* fencing token, 0: none */
    int64_t value;
    int64_t extra;
};
_Static_assert(sizeof(struct history_record) == 64, "a record is one cache line");

enum { HISTORY_RECORD_SIZE = 64, HISTORY_HEADER_SIZE = 4096, HISTORY_VERSION = 1, HISTORY_TEXT_CHUNK = 56 };
enum { HISTORY_BATCH = 256 };
#define HISTORY_FULL UINT64_MAX
#define HISTORY_TEXT_MAX (1u << 20) /* bytes of one text */

struct history_settings {
    enum history_time time;
    uint64_t seed;
    uint64_t capacity; /* records, for which the disk space is reserved at once: no append can hit a full disk */
};

struct history;

/* All functions that take `error` write a sentence there when they return false or NULL. */
struct history_error {
    char text[256];
};
/* Write the sentence and return false, for a `return history_fail(...)`. */
bool history_fail(struct history_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool history_fail_damaged(struct history_error *error, const char *path, uint64_t index);

/* Creates a file of mode 0600; it must not exist. */
bool history_create(const char *path, const struct history_settings *settings, struct history_error *error);

/* Opens for appending. The caller closes with history_close. */
struct history *history_open(const char *path, struct history_error *error);

/* Maps the pages of all unused slots now, instead of one by one during appends. */
void history_prefault(struct history *history);

/* Appends a copy of *record (its checksum is ignored). Returns its index, or HISTORY_FULL: then the record is
 * counted as dropped and every verdict on this history is at best inconclusive. Safe from any thread or process. */
uint64_t history_append(struct history *history, const struct history_record *record);

/* Appends a text of any bytes, `length` up to HISTORY_TEXT_MAX, in consecutive slots; returns the index by which other
 * records refer to it, 0 if it did not fit. */
uint32_t history_text(struct history *history, const void *bytes, size_t length, int64_t mono_ns, int64_t wall_ns);

/* Number of records so far. */
uint64_t history_count(const struct history *history);
/* Removes all records from `count` on, and the mark of its end: for many attempts from the same beginning. Only while
 * there is no other writer and no reader. */
void history_rewind(struct history *history, uint64_t count);

/* Marks the end: no more records follow, and readers stop waiting. */
void history_end(struct history *history);
void history_close(struct history *history);

/* --- reading --- */

enum history_state {
    HISTORY_RECORD,  /* *record is valid */
    HISTORY_TORN,    /* the slot was reserved and its writer died */
    HISTORY_WAIT,    /* the history is live and the record not there yet: ask again */
    HISTORY_DAMAGED, /* the content does not fit its checksum */
    HISTORY_END,
};

struct history_reader;

/* Opens for reading. Refuses files that are no history, are of another version, or were cut short. The caller frees
 * with history_reader_close. */
struct history_reader *history_reader_open(const char *path, struct history_error *error);
/* The same of an open file, which may be closed afterwards; `path` is for messages. */
struct history_reader *history_reader_map(int fd, const char *path, struct history_error *error);
/* The same over memory that stays the caller's, aligned as malloc aligns. */
struct history_reader *history_reader_memory(const void *bytes, size_t length, struct history_error *error);
/* The next slot in order. With `follow`, an unpublished slot is HISTORY_WAIT until the history has ended. After
 * HISTORY_DAMAGED, history_reader_index says where. */
enum history_state history_reader_next(struct history_reader *reader, bool follow, struct history_record *record);
/* The published records from the next slot on, in place and checked, HISTORY_BATCH at most. Returns their
 * number; they count as read. 0: history_reader_next says what comes instead. They stay valid until the reader is
 * closed. */
uint64_t history_reader_batch(struct history_reader *reader, const struct history_record **records);
/* Copies the record at an index, whatever was read last. False if it is not there, or not whole. */
bool history_reader_at(const struct history_reader *reader, uint64_t index, struct history_record *record);
/* Index of the slot that was read last. */
uint64_t history_reader_index(const struct history_reader *reader);
/* Starts again at the first slot. */
void history_reader_rewind(struct history_reader *reader);
/* The bytes of the text at `index`, NULL if it is not there, or not whole. Valid until the next call. */
const char *history_reader_text(struct history_reader *reader, uint32_t index, size_t *length);
/* The text at an index as a name, escaped for a terminal and cut, in a buffer of `size` bytes; "#7" if it is not there.
 * Returns the buffer. */
const char *history_name(struct history_reader *reader, uint32_t index, char *buffer, size_t size);
struct history_settings history_reader_settings(const struct history_reader *reader);
/* Number of slots in use, and of records that found no slot. */
uint64_t history_reader_count(const struct history_reader *reader);
uint64_t history_reader_dropped(const struct history_reader *reader);
void history_reader_close(struct history_reader *reader);

/* Writes the used part of a history to a new file. */
bool history_save(const char *from, const char *to, struct history_error *error);

/* Fills the header of a history that is composed in memory: `count` slots are in use, and it has ended. */
void history_header_fill(void *bytes, const struct history_settings *settings, uint64_t count);

/* The checksum of a record at an index; never 0. */
uint32_t history_checksum(const struct history_record *record, uint64_t index);

/* The name of a kind in JSON Lines ("acquire-invoke"), NULL for no kind. */
const char *history_kind_name(unsigned kind);
const char *history_object_name(unsigned object);
