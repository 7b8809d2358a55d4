#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/library_service/library_server.h"
#include "harness/process/postgres_memory.h"

/* The world has a session of its own, which outlasts every schedule, and asks by the protocol's simple query (its
 * documentation, "Frontend/Backend Protocol"). What a library leaves are rows, advisory locks and open transactions. */

enum { ANSWER = 1 << 18, REQUEST = 4096, NAME = 256, PATH = 4096, HEAD = 5, PROTOCOL_3 = 196608 };

static const char STARTUP[] = "user\0lockstorm\0database\0postgres\0application_name\0lockstorm-search\0";

/* Each transaction locks its own virtual number, which keeps nobody else out. */
#define LOCKING "SELECT pid FROM pg_locks WHERE locktype <> 'virtualxid'"

/* What stands in a table is asked for as XML, which no other statement can do for tables that it does not know. */
static const char LEFT[] =
    "SELECT 'advisory lock', concat_ws(' ', classid, objid) FROM pg_locks "
    "WHERE locktype = 'advisory' AND pid <> pg_backend_pid() UNION "
    "SELECT CASE WHEN pid IN (" LOCKING ") THEN 'transaction' ELSE 'transaction without a lock' END, state "
    "FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND xact_start IS NOT NULL AND pid <> pg_backend_pid() UNION "
    "SELECT 'row', format('%I.%I', schemaname, tablename) FROM pg_tables "
    "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND query_to_xml("
    "format('SELECT 1 FROM %I.%I LIMIT 1', schemaname, tablename), false, false, '')::text LIKE '%<row%' "
    "ORDER BY 1, 2";

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
    size_t length = 4;
    four_bytes_put(request + length, PROTOCOL_3);
    length += 4;
    memcpy(request + length, STARTUP, sizeof STARTUP); /* with the zero byte that ends the list */
    length += sizeof STARTUP;
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
    if (snprintf(file, sizeof file, "%.*s/data/" POSTGRES_PID_FILE, length, server->address) < (int)sizeof file)
        postgres_memory_remove(file);
}

/* The first two values of a row; one that is missing is empty. */
static void row_read(const char *bytes, size_t length, char values[2][NAME]) {
    size_t at = 2;
    for (int each = 0; each < 2; each++) {
        values[each][0] = '\0';
        if (at + 4 > length) continue;
        uint32_t size = four_bytes(bytes + at);
        at += 4;
        if (size == UINT32_MAX || at + size > length) continue;
        snprintf(values[each], NAME, "%.*s", (int)size, bytes + at);
        at += size;
    }
}

/* Gives the rows of the answer to `taken`, which may be NULL. `text`: one of those above; all of them fit. */
static void query(struct library_server *server, const char *text, residue_taken *taken, void *taker) {
    static struct reply reply;
    char request[REQUEST], values[2][NAME];
    size_t size = strlen(text) + 1;
    request[0] = 'Q';
    four_bytes_put(request + 1, (uint32_t)(4 + size));
    memcpy(request + HEAD, text, size);
    reply.length =
        server_exchange(server, server->control, (struct span){request, HEAD + size}, reply.bytes, sizeof reply.bytes);
    if (!is_whole(&reply)) server_give_up(server, "it does not answer a query");
    for (size_t at = 0; at + HEAD <= reply.length;) {
        size_t length = 1 + (size_t)four_bytes(reply.bytes + at + 1);
        if (reply.bytes[at] == 'E') server_give_up(server, "it refuses a query");
        if (reply.bytes[at] == 'D' && taken) {
            row_read(reply.bytes + at + HEAD, length - HEAD, values);
            taken(taker, values[0], values[1], -1);
        }
        at += length;
    }
}

static void postgres_flush(struct library_server *server) {
    query(server, END_HOLDERS, NULL, NULL);
    query(server, EMPTY_TABLES, NULL, NULL);
    query(server, RESTART_SEQUENCES, NULL, NULL);
}

static void postgres_residue(struct library_server *server, residue_taken *taken, void *taker) {
    query(server, LEFT, taken, taker);
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
};
