#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/library_service/library_server.h"
#include "harness/process/postgres_memory.h"

/* The world has a session of its own, which outlasts every schedule, and asks by the protocol's simple query (its
 * documentation, "Frontend/Backend Protocol"). What a library leaves are rows, advisory locks and open transactions. */

enum { ANSWER = 1 << 18, REQUEST = 1 << 16, PATH = 4096, HEAD = 5, PROTOCOL_3 = 196608 };

static const char STARTUP[] = "user\0lockstorm\0application_name\0lockstorm-search\0database";
static const char DATABASE[] = "postgres"; /* of locks */

/* Each transaction locks its own virtual number, which keeps nobody else out. */
#define LOCKING "SELECT pid FROM pg_locks WHERE locktype <> 'virtualxid'"

#define LEFT_LOCKS                                                                                                     \
    "SELECT 'advisory lock', concat_ws(' ', classid, objid) FROM pg_locks "                                            \
    "WHERE locktype = 'advisory' AND pid <> pg_backend_pid() UNION "                                                   \
    "SELECT CASE WHEN pid IN (" LOCKING ") THEN 'transaction' ELSE 'transaction without a lock' END, state "           \
    "FROM pg_stat_activity "                                                                                           \
    "WHERE backend_type = 'client backend' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
#define IN_ORDER " ORDER BY 1, 2"

/* An application's rows are there to stay. */
static const char LEFT_OF_APPLICATION[] = LEFT_LOCKS IN_ORDER;

/* What stands in a table is asked for as XML, which no other statement can do for tables that it does not know. */
static const char LEFT[] = LEFT_LOCKS
    " UNION SELECT 'row', format('%I.%I', schemaname, tablename) FROM pg_tables "
    "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND query_to_xml("
    "format('SELECT 1 FROM %I.%I LIMIT 1', schemaname, tablename), false, false, '')::text LIKE '%<row%'" IN_ORDER;

static const char EMPTY_TABLES[] =
    "DO $$ DECLARE each record; BEGIN FOR each IN SELECT schemaname, tablename FROM pg_tables "
    "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') LOOP "
    "EXECUTE format('DELETE FROM %I.%I', each.schemaname, each.tablename); END LOOP; END $$";

/* Their sessions end: nobody else can give back what they hold. A session of a library's pool that is only idle in a
 * transaction goes on: the library would be accused of a connection that broke. */
static const char END_HOLDERS[] =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' "
    "AND pid <> pg_backend_pid() AND (state = 'active' OR pid IN (" LOCKING "))";

static const char RESTART_SEQUENCES[] =
    "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false) FROM pg_sequences";

/* An application's data, as they were when its instances had started. The schema of a table that it makes later is not
 * touched. A restored table keeps its triggers and foreign keys quiet, as a replica does. */
static const char SAVE[] =
    "DROP SCHEMA IF EXISTS lockstorm_saved CASCADE; CREATE SCHEMA lockstorm_saved;"
    "CREATE TABLE lockstorm_saved.tables AS SELECT row_number() OVER (ORDER BY c.oid) AS number,"
    " format('%I.%I', n.nspname, c.relname) AS name, (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)"
    " FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND c.relpersistence <> 't'"
    " AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'lockstorm_saved');"
    "CREATE TABLE lockstorm_saved.sequences AS SELECT format('%I.%I', schemaname, sequencename) AS name,"
    " coalesce(last_value, start_value) AS value, last_value IS NOT NULL AS called FROM pg_sequences;"
    "DO $$ DECLARE t record; BEGIN FOR t IN SELECT * FROM lockstorm_saved.tables WHERE columns IS NOT NULL LOOP "
    "EXECUTE format('CREATE TABLE lockstorm_saved.t%s AS SELECT %s FROM ONLY %s', t.number, t.columns, t.name);"
    " END LOOP; END $$;"
    "CREATE FUNCTION lockstorm_saved.restore() RETURNS void LANGUAGE plpgsql AS $$ DECLARE t record; BEGIN "
    "SET LOCAL session_replication_role = replica; "
    "FOR t IN SELECT * FROM lockstorm_saved.tables WHERE columns IS NOT NULL LOOP "
    "EXECUTE format('DELETE FROM ONLY %s', t.name); "
    "EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM lockstorm_saved.t%s', t.name, "
    "t.columns, t.columns, t.number); END LOOP; "
    "PERFORM setval(name::regclass, value, called) FROM lockstorm_saved.sequences; END $$";

static const char RESTORE[] = "SELECT lockstorm_saved.restore()";

struct reply {
    char bytes[ANSWER];
    size_t length;
};

/* Whether the server has answered up to where it is ready for the next query. */
static bool is_whole(const struct reply *reply) {
    size_t at = 0;
    while (at + HEAD <= reply->length) {
        size_t length = 1 + (size_t)four_bytes(reply->bytes + at + 1);
        if (reply->bytes[at] == 'Z') return at + length == reply->length;
        at += length;
    }
    return false;
}

static bool postgres_kind_answers(struct library_server *server) {
    static struct reply reply;
    char request[REQUEST];
    const char *database = server->database ? server->database : DATABASE;
    size_t length = 4;
    four_bytes_put(request + length, PROTOCOL_3);
    length += 4;
    memcpy(request + length, STARTUP, sizeof STARTUP);
    length += sizeof STARTUP;
    length += (size_t)snprintf(request + length, REQUEST - length - 1, "%s", database) + 1;
    request[length++] = '\0'; /* which ends the list */
    four_bytes_put(request, (uint32_t)length);
    if (server->control >= 0) close(server->control);
    server->control = server_connect(server);
    if (server->control < 0) return false;
    reply.length =
        server_exchange(server, server->control, (struct span){request, length}, reply.bytes, sizeof reply.bytes);
    return is_whole(&reply);
}

/* Its data lie beside the socket (harness/lockstorm/servers/hosted_server.py). */
static void postgres_kind_end(struct library_server *server) {
    char file[PATH];
    const char *slash = strrchr(server->address, '/');
    int length = slash ? (int)(slash - server->address) : 0;
    hosted_server_end(server);
    server->is_saved = false;
    if (snprintf(file, sizeof file, "%.*s/data/" POSTGRES_PID_FILE, length, server->address) < (int)sizeof file)
        postgres_memory_remove(file);
}

/* The first values of a row; returns their number. */
static int row_read(const char *bytes, size_t length, char texts[SERVER_COLUMNS][SERVER_VALUE],
                    const char *values[SERVER_COLUMNS]) {
    int count = length >= 2 ? (unsigned char)bytes[0] << 8 | (unsigned char)bytes[1] : 0;
    size_t at = 2;
    if (count > SERVER_COLUMNS) count = SERVER_COLUMNS;
    for (int each = 0; each < count; each++) {
        values[each] = NULL;
        if (at + 4 > length) continue;
        uint32_t size = four_bytes(bytes + at);
        at += 4;
        if (size == UINT32_MAX || at + size > length) continue;
        snprintf(texts[each], SERVER_VALUE, "%.*s", (int)size, bytes + at);
        values[each] = texts[each];
        at += size;
    }
    return count;
}

/* An error has fields, each a letter and a text: the message is in M. */
static void error_read(const char *bytes, size_t length, char *reason) {
    snprintf(reason, SERVER_REASON, "it refuses it");
    for (size_t at = 0; at < length && bytes[at];) {
        size_t size = strnlen(bytes + at + 1, length - at - 1);
        if (bytes[at] == 'M') snprintf(reason, SERVER_REASON, "%.*s", (int)size, bytes + at + 1);
        at += size + 2;
    }
}

static bool postgres_ask(struct library_server *server, const char *text, row_taken *taken, void *taker, char *reason) {
    static struct reply reply;
    static char request[REQUEST], texts[SERVER_COLUMNS][SERVER_VALUE];
    const char *values[SERVER_COLUMNS];
    size_t size = strlen(text) + 1;
    bool good = true;
    if (HEAD + size > sizeof request) {
        snprintf(reason, SERVER_REASON, "it is longer than %zu bytes", sizeof request - HEAD - 1);
        return false;
    }
    request[0] = 'Q';
    four_bytes_put(request + 1, (uint32_t)(4 + size));
    memcpy(request + HEAD, text, size);
    reply.length =
        server_exchange(server, server->control, (struct span){request, HEAD + size}, reply.bytes, sizeof reply.bytes);
    if (!is_whole(&reply)) server_give_up(server, "it does not answer a query");
    for (size_t at = 0; at + HEAD <= reply.length;) {
        size_t length = 1 + (size_t)four_bytes(reply.bytes + at + 1);
        if (reply.bytes[at] == 'E') error_read(reply.bytes + at + HEAD, length - HEAD, reason);
        if (reply.bytes[at] == 'E') good = false;
        if (reply.bytes[at] == 'D' && taken)
            taken(taker, values, row_read(reply.bytes + at + HEAD, length - HEAD, texts, values));
        at += length;
    }
    return good;
}

/* Asks one of the texts above, whose answers fit. */
static void query(struct library_server *server, const char *text, row_taken *taken, void *taker) {
    char reason[SERVER_REASON];
    if (!postgres_ask(server, text, taken, taker, reason)) server_give_up(server, reason);
}

static void postgres_flush(struct library_server *server) {
    query(server, END_HOLDERS, NULL, NULL);
    if (server->database) {
        if (server->is_saved) query(server, RESTORE, NULL, NULL);
        return;
    }
    query(server, EMPTY_TABLES, NULL, NULL);
    query(server, RESTART_SEQUENCES, NULL, NULL);
}

static void postgres_save(struct library_server *server) {
    query(server, SAVE, NULL, NULL);
    server->is_saved = true;
}

struct residue_hearer {
    residue_taken *taken;
    void *taker;
};

static void residue_hear(void *hearer, const char *const *values, int count) {
    const struct residue_hearer *to = hearer;
    if (count >= 2) to->taken(to->taker, values[0] ? values[0] : "", values[1] ? values[1] : "", -1);
}

static void postgres_residue(struct library_server *server, residue_taken *taken, void *taker) {
    query(server, server->database ? LEFT_OF_APPLICATION : LEFT, residue_hear, &(struct residue_hearer){taken, taker});
}

const struct server_kind POSTGRES_KIND = {
    .service = "postgres",
    .requests = &POSTGRES_REQUEST_FORMAT,
    .answers = &POSTGRES_REPLY_FORMAT,
    .is_hosted = true,
    .answers_now = postgres_kind_answers,
    .end = postgres_kind_end,
    .flush = postgres_flush,
    .residue = postgres_residue,
    .ask = postgres_ask,
    .save = postgres_save,
};
