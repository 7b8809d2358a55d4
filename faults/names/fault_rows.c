#include "faults/names/fault_rows.h"

#include <stddef.h>
#include <string.h>

const struct fault_row FAULT_ROWS[FAULT_IDS] = {
    [FAULT_ID_CLIENT_CLOCK_JUMP] =
        {
            .name = "client-clock-jump",
            .meaning = "step the wall clock of one client's host, forwards or backwards",
            .proof = "the client's time stamp",
            .source = "redis-py#415; Kleppmann 2016, \"Making Redlock safe with timing assumptions\"",
            .is[FAULT_IN_TRIAL] = "the wall clock that the client reads is stepped",
            .is[FAULT_IN_SIMULATION] = "the wall clock of a client jumps",
            .is[FAULT_IN_LIBRARY] = "the wall clock of a client jumps",
        },
    [FAULT_ID_CLOCK_DRIFT] =
        {
            .name = "clock-drift",
            .meaning = "make the wall clock of one server or of one client's host run too fast or too slow",
            .proof = "what it has gained: a server's TIME, and the remaining life of a key; a client's time stamp",
            .source =
                "Kleppmann 2016, \"The unreliable time of Redlock\"; redis.io, \"Is the algorithm asynchronous?\"",
            .is[FAULT_IN_TRIAL] = "a clock that runs too fast or too slow",
            .is_not[FAULT_IN_SIMULATION] = "clock-jump at a chosen moment reaches the same states",
            .is_not[FAULT_IN_LIBRARY] = "clock-jump at a chosen moment reaches the same states",
        },
    [FAULT_ID_CLOCK_JUMP] =
        {
            .name = "clock-jump",
            .meaning = "step the wall clock of one server, forwards or backwards",
            .proof = "its TIME, and the remaining life of a key",
            .source =
                "Kleppmann 2016, \"Making Redlock safe with timing assumptions\"; antirez, news/101; redis-py#415",
            .is[FAULT_IN_TRIAL] = "the server's wall clock is stepped",
            .is[FAULT_IN_SIMULATION] = "the wall clock of a node jumps",
            .is[FAULT_IN_LIBRARY] = "the wall clock of a server jumps",
        },
    [FAULT_ID_CLOSE_LINKS] =
        {
            .name = "close-links",
            .meaning = "the proxy closes the connections of a client to its servers; both sides see it",
            .proof = "the number of connections that the proxy closed",
            .source =
                "PostgreSQL documentation, 13.3.5 (session locks end with the session); PgBouncer, server_idle_timeout",
            .is[FAULT_IN_TRIAL] = "the proxy closes connections",
            .is_not[FAULT_IN_SIMULATION] = "commands and replies are lost one by one: drop-request, lose-reply",
            .is_not[FAULT_IN_LIBRARY] = "a connection is lost with a message on it: drop-request, lose-reply",
        },
    [FAULT_ID_CRASH_SERVER] =
        {
            .name = "crash-server",
            .old_name = "restart",
            .meaning =
                "kill a server (SIGKILL) and start it again, with its data, without the last writes or without any data",
            .proof =
                "after the restart INFO's run_id has changed, and a key written right before the crash is there, or lost",
            .source =
                "redis.io, Distributed Locks, \"Performance, crash recovery and fsync\"; Kleppmann 2016 (delayed restarts)",
            .is[FAULT_IN_TRIAL] = "SIGKILL, and a new process at the same address",
            .is[FAULT_IN_SIMULATION] =
                "the leading server of a node restarts with its data; connections and scripts are lost",
            .is[FAULT_IN_LIBRARY] = "a server restarts with its data; connections and scripts are lost",
        },
    [FAULT_ID_CRASH_SERVER_EMPTY] =
        {
            .name = "crash-server-empty",
            .old_name = "restart-empty",
            .meaning = "kill a server (SIGKILL) and start it again without any data",
            .proof = "the server is empty after its restart",
            .source =
                "redis.io, Distributed Locks, \"Performance, crash recovery and fsync\"; Kleppmann 2016 (delayed restarts)",
            .is_not[FAULT_IN_TRIAL] = "use crash-server with data=none",
            .is[FAULT_IN_SIMULATION] = "the leading server of a node restarts without its data",
            .is[FAULT_IN_LIBRARY] = "a server restarts without its data",
        },
    [FAULT_ID_DELAY_MESSAGE] =
        {
            .name = "delay-message",
            .meaning = "a published message reaches one subscriber late",
            .proof = "the proxy's count of delayed messages",
            .source = "Redis, \"Pub/Sub\"; Kleppmann 2016: packets are delayed without bound",
            .is[FAULT_IN_TRIAL] = "a rule of the proxy",
            .is_not[FAULT_IN_SIMULATION] = "a message arrives at its client's next step, which may be late",
            .is_not[FAULT_IN_LIBRARY] = "use hold-reply: it delays all that a connection carries to its client",
        },
    [FAULT_ID_DELAY_WRITE] =
        {
            .name = "delay-write",
            .meaning = "a client's write to the resource is held in the network until the fault is healed",
            .proof = "the proxy holds the write",
            .source =
                "Kleppmann 2016, \"Protecting a resource with a lock\": the packet delayed for 90 seconds (GitHub, 2012)",
            .is[FAULT_IN_TRIAL] = "a rule of the proxy on the link to the resource",
            .is_not[FAULT_IN_SIMULATION] = "use pause-client-before-send",
            .is_not[FAULT_IN_LIBRARY] = "a library's calls have no resource: the promises are checked on the calls",
        },
    [FAULT_ID_DROP_MESSAGE] =
        {
            .name = "drop-message",
            .old_name = "lose-message",
            .meaning = "lose a published message on its way to one subscriber",
            .proof = "the proxy's count of dropped messages",
            .source = "Redis, \"Pub/Sub\": at-most-once delivery; redisson#763, #5761",
            .is[FAULT_IN_TRIAL] = "a rule of the proxy",
            .is[FAULT_IN_SIMULATION] = "the oldest message on a channel that has arrived for a client is lost",
            .is_not[FAULT_IN_LIBRARY] = "use lose-reply: a connection is lost with what it carries",
        },
    [FAULT_ID_DROP_REQUEST] =
        {
            .name = "drop-request",
            .meaning = "lose a command on its way to the server; it is not executed",
            .proof = "the server never receives the command",
            .source = "Kleppmann 2016: packets are lost; redisson#1966",
            .is_not[FAULT_IN_TRIAL] = "use partition, which loses everything that is sent",
            .is[FAULT_IN_SIMULATION] = "the command is lost",
            .is[FAULT_IN_LIBRARY] = "the connection is lost, with the request on its way",
        },
    [FAULT_ID_DUPLICATE_REQUEST] =
        {
            .name = "duplicate-request",
            .meaning = "a command reaches the server twice, as after a retry; the client sees one reply",
            .proof = "the proxy's count of duplicated commands",
            .source = "redisson#4871, #5000 (command retry makes unlock run twice), #5066 (over-release)",
            .is[FAULT_IN_TRIAL] = "a rule of the proxy",
            .is[FAULT_IN_SIMULATION] = "the command arrives a second time, later",
            .is_not[FAULT_IN_LIBRARY] = "a connection is a stream: bytes do not arrive twice",
        },
    [FAULT_ID_ERROR_REPLY] =
        {
            .name = "error-reply",
            .meaning = "a busy server answers a command with an error and does not execute it",
            .proof = "the command has no effect, and its reply is the error",
            .source = "redisson#3332, #3334 (BUSY stopped the renewal); redis.io, \"Diagnosing latency issues\"",
            .is_not[FAULT_IN_TRIAL] = "use slow-server, read-only or max-clients: real servers refuse for a reason",
            .is[FAULT_IN_SIMULATION] = "a busy node answers the command with an error and does not execute it",
            .is[FAULT_IN_LIBRARY] = "a busy server answers the request with an error and does not execute it",
        },
    [FAULT_ID_EVICT] =
        {
            .name = "evict",
            .meaning = "the server is short of memory: it evicts the lock's key, or refuses writes",
            .proof =
                "evicted_keys has grown and the named key is gone; with noeviction, a write by the fault is answered -OOM",
            .source =
                "Redis, Key eviction; langfuse#15509 (volatile-lru evicted the locks), RedLock.net#101 (allkeys-lru)",
            .is[FAULT_IN_TRIAL] = "the server is given a memory limit",
            .is_not[FAULT_IN_SIMULATION] = "no server has a memory limit; crash-server-empty loses keys",
            .is_not[FAULT_IN_LIBRARY] = "no server has a memory limit; crash-server-empty loses keys",
        },
    [FAULT_ID_FAILOVER] =
        {
            .name = "failover",
            .meaning = "promote a replica, with or without the last writes, and lead the clients to it",
            .proof =
                "ROLE of both; a key written last exists (replicated=yes) or is missing (no) on the new master; TIME",
            .source =
                "redis.io, Distributed Locks, \"Why failover-based implementations are not enough\"; redisson issue 5256",
            .is[FAULT_IN_TRIAL] = "the master is replaced by its replica",
            .is[FAULT_IN_SIMULATION] = "the master is gone, and its replica is promoted with what has arrived there",
            .is_not[FAULT_IN_LIBRARY] = "hosted programs have servers without replicas",
        },
    [FAULT_ID_FAILOVER_CLUSTER] =
        {
            .name = "failover-cluster",
            .meaning = "lose a master of a real Redis Cluster, whose replica is elected",
            .proof =
                "CLUSTER NODES of the others: the replica is master of the slots; a key written last exists or is missing",
            .source = "Redis Cluster specification, \"Write safety\" and \"Replica election and promotion\"",
            .is[FAULT_IN_TRIAL] = "real servers of a cluster",
            .is_not[FAULT_IN_SIMULATION] = "use failover",
            .is_not[FAULT_IN_LIBRARY] = "hosted programs have servers without replicas",
        },
    [FAULT_ID_FAILOVER_SENTINEL] =
        {
            .name = "failover-sentinel",
            .meaning = "lose the master under real sentinels, which promote a replica",
            .proof = "+switch-master at a sentinel; ROLE of the new master; a key written last exists or is missing",
            .source =
                "Redis documentation of Sentinel, \"Sentinel and consistency\"; issues redbeat 163, infrahub 9450",
            .is[FAULT_IN_TRIAL] = "real sentinels",
            .is_not[FAULT_IN_SIMULATION] = "use failover",
            .is_not[FAULT_IN_LIBRARY] = "hosted programs have servers without replicas",
        },
    [FAULT_ID_FLUSH] =
        {
            .name = "flush",
            .meaning = "FLUSHALL: every key of the server is gone, the locks among them",
            .proof = "a key that the fault wrote right before is gone; DBSIZE is read, too",
            .source =
                "Redis, FLUSHALL; redis.io, Distributed Locks (a node that forgets); what a shared cache does to its locks",
            .is[FAULT_IN_TRIAL] = "FLUSHALL",
            .is_not[FAULT_IN_SIMULATION] = "use crash-server-empty",
            .is_not[FAULT_IN_LIBRARY] = "use crash-server-empty",
        },
    [FAULT_ID_HOLD_REPLY] =
        {
            .name = "hold-reply",
            .meaning = "delay what the server sends to a client, replies and messages",
            .proof = "the reply arrives later by the chosen time",
            .source = "Kleppmann 2016: packets are delayed without bound",
            .is_not[FAULT_IN_TRIAL] = "delay-message delays a published message",
            .is[FAULT_IN_SIMULATION] =
                "the command is executed, and its reply arrives later, or after its client gave up",
            .is[FAULT_IN_LIBRARY] = "what the connection carries to its client is late",
        },
    [FAULT_ID_HOLD_REQUEST] =
        {
            .name = "hold-request",
            .meaning = "delay a command on its way to the server",
            .proof = "the command arrives later by the chosen time",
            .source = "Kleppmann 2016: packets are delayed without bound",
            .is_not[FAULT_IN_TRIAL] = "delay-write holds a write to the resource; use pause-server for commands",
            .is[FAULT_IN_SIMULATION] = "the command arrives later; no client waits for it for ever",
            .is[FAULT_IN_LIBRARY] = "what the connection carries to its server is late",
        },
    [FAULT_ID_KILL_CLIENT] =
        {
            .name = "kill-client",
            .old_name = "crash",
            .meaning = "kill a client's process; it may be started again without its memory",
            .proof = "its exit status: killed by signal 9",
            .source = "redisson#2045, ShedLock#65, horizon#1738: a crash between acquire and release",
            .is[FAULT_IN_TRIAL] = "SIGKILL",
            .is[FAULT_IN_SIMULATION] = "the client takes no more steps, and its connections close",
            .is[FAULT_IN_LIBRARY] = "the program is ended",
        },
    [FAULT_ID_KILL_CONNECTIONS] =
        {
            .name = "kill-connections",
            .meaning = "CLIENT KILL: the server closes the connections of its clients",
            .proof = "the number of connections closed, and that CLIENT LIST shows none of them any more",
            .source =
                "redisson#6026, #2180 (subscriptions not made again), #2515 (renewals that ended); Redis, CLIENT KILL",
            .is[FAULT_IN_TRIAL] = "CLIENT KILL",
            .is_not[FAULT_IN_SIMULATION] = "commands and replies are lost one by one: drop-request, lose-reply",
            .is_not[FAULT_IN_LIBRARY] = "a connection is lost with a message on it: drop-request, lose-reply",
        },
    [FAULT_ID_KILL_SERVER] =
        {
            .name = "kill-server",
            .meaning = "kill a member of an etcd or ZooKeeper ensemble (SIGKILL) and start it again with its data",
            .proof = "its process is gone, and another one answers in its place",
            .source = "Jepsen: etcd 3.4.3 (kill); etcd documentation, Failure modes",
            .is[FAULT_IN_TRIAL] = "SIGKILL, and a new process at the same address",
            .is_not[FAULT_IN_SIMULATION] = "ensembles are not modelled; crash-server is the same for one node",
            .is_not[FAULT_IN_LIBRARY] = "use crash-server",
        },
    [FAULT_ID_KILL_SUBSCRIBER] =
        {
            .name = "kill-subscriber",
            .meaning = "reset a subscriber's connection, and lose the message that is on its way",
            .proof = "the proxy's count of connections that were reset",
            .source = "redisson#6026, #2180; Redis, \"Client handling\": output buffer limits of pub/sub clients",
            .is[FAULT_IN_TRIAL] = "a rule of the proxy",
            .is_not[FAULT_IN_SIMULATION] = "use drop-message",
            .is_not[FAULT_IN_LIBRARY] = "a connection is lost with a message on it: drop-request, lose-reply",
        },
    [FAULT_ID_LOSE_REPLY] =
        {
            .name = "lose-reply",
            .meaning = "a command runs, and its reply never reaches the client",
            .proof = "the proxy's count of swallowed replies",
            .source = "redisson#1966, #4178, #4706: a reply that times out leaves a lock, a count or a renewal behind",
            .is[FAULT_IN_TRIAL] = "a rule of the proxy",
            .is[FAULT_IN_SIMULATION] = "the command is executed, its reply is lost",
            .is[FAULT_IN_LIBRARY] = "the connection is lost after its request was executed, with the answer",
        },
    [FAULT_ID_MAX_CLIENTS] =
        {
            .name = "max-clients",
            .meaning = "the server accepts no new connection",
            .proof = "a new connection is refused by the server: max number of clients reached",
            .source = "redisson#1288; Redis, Client handling: maximum concurrent connected clients",
            .is[FAULT_IN_TRIAL] = "the server is given a limit of connections",
            .is_not[FAULT_IN_SIMULATION] = "connections are not counted; use error-reply",
            .is_not[FAULT_IN_LIBRARY] = "connections are not counted; use error-reply",
        },
    [FAULT_ID_PARTITION] =
        {
            .name = "partition",
            .meaning = "cut a client, a server or a link off from the others, in one direction or both",
            .proof = "the proxy's count of bytes that were lost",
            .source =
                "redisson#3636, consul#18271: a holder cut off from the lock, not from the data; Jepsen's partitions",
            .is[FAULT_IN_TRIAL] = "a rule of the proxy",
            .is_not[FAULT_IN_SIMULATION] = "use drop-request, lose-reply and stall-replica",
            .is_not[FAULT_IN_LIBRARY] = "use drop-request and lose-reply",
        },
    [FAULT_ID_PAUSE_CLIENT] =
        {
            .name = "pause-client",
            .old_name = "pause",
            .meaning = "stop a client's whole process, watchdog included, and continue it later",
            .proof =
                "every thread of the process is in state T (/proc); where clients share a process: it did not go on",
            .source = "Kleppmann 2016, \"Protecting a resource with a lock\" (the GC pause); HBase's session expiry",
            .is[FAULT_IN_TRIAL] = "SIGSTOP, and SIGCONT",
            .is[FAULT_IN_SIMULATION] = "the client takes no steps; a command that it has sent arrives",
            .is[FAULT_IN_LIBRARY] = "the program does nothing",
        },
    [FAULT_ID_PAUSE_CLIENT_BEFORE_SEND] =
        {
            .name = "pause-client-before-send",
            .old_name = "pause-before-send",
            .meaning = "pause a client right before its next command leaves",
            .proof = "the client takes no step, and the command arrives after the pause",
            .source = "Kleppmann 2016, \"Protecting a resource with a lock\" (the GC pause); HBase's session expiry",
            .is_not[FAULT_IN_TRIAL] = "a process cannot be stopped at that moment from outside; use pause-client",
            .is[FAULT_IN_SIMULATION] = "as pause-client, but the client's next command leaves only after the pause",
            .is_not[FAULT_IN_LIBRARY] = "use pause-client before the call, or hold-request",
        },
    [FAULT_ID_PAUSE_COMMANDS] =
        {
            .name = "pause-commands",
            .old_name = "client-pause",
            .meaning = "CLIENT PAUSE: the server makes its clients wait, all of them or those that write",
            .proof = "a write by the fault itself is not answered",
            .source =
                "Redis, CLIENT PAUSE (mode WRITE since 6.2); redisson#1966: CLIENT PAUSE 5000, renewed for ever after",
            .is[FAULT_IN_TRIAL] = "CLIENT PAUSE at a server",
            .is_not[FAULT_IN_SIMULATION] = "use hold-request, or error-reply, for single commands",
            .is_not[FAULT_IN_LIBRARY] = "use hold-request",
        },
    [FAULT_ID_PAUSE_SERVER] =
        {
            .name = "pause-server",
            .meaning = "stop a server's whole process and continue it later",
            .proof = "every thread of the process and its children is in state T (/proc), and a request gets no reply",
            .source = "redis.io, \"Diagnosing latency issues\" (fork, swapping); etcd under SIGSTOP in Jepsen's tests",
            .is[FAULT_IN_TRIAL] = "SIGSTOP, and SIGCONT",
            .is_not[FAULT_IN_SIMULATION] = "use hold-request, or error-reply, for single commands",
            .is_not[FAULT_IN_LIBRARY] = "use hold-request",
        },
    [FAULT_ID_READ_ONLY] =
        {
            .name = "read-only",
            .meaning = "the server refuses writes: -NOREPLICAS or -READONLY",
            .proof = "a write by the fault itself is answered -NOREPLICAS or -READONLY",
            .source =
                "Redis, Replication (min-replicas-to-write; read-only replicas); aspnet-redis-providers#130: after a failover",
            .is[FAULT_IN_TRIAL] = "a setting of the server",
            .is_not[FAULT_IN_SIMULATION] = "use error-reply",
            .is_not[FAULT_IN_LIBRARY] = "use error-reply",
        },
    [FAULT_ID_SCRIPT_FLUSH] =
        {
            .name = "script-flush",
            .meaning = "SCRIPT FLUSH: the server forgets every script",
            .proof = "SCRIPT EXISTS replies 0 for a script that the fault loaded right before",
            .source =
                "redlock-rb#27, #29: a hosted Redis ran SCRIPT FLUSH, no lock could be released; Redis, EVALSHA: the cache is volatile",
            .is[FAULT_IN_TRIAL] = "SCRIPT FLUSH",
            .is_not[FAULT_IN_SIMULATION] = "use crash-server: scripts are lost",
            .is_not[FAULT_IN_LIBRARY] = "use crash-server: scripts are lost",
        },
    [FAULT_ID_SERVER_DOWN] =
        {
            .name = "server-down",
            .meaning = "one of several servers is down for good, and a majority is left: connections are refused",
            .proof = "no command reaches it, and each connection to it fails at once",
            .source = "redlock-rb#129: a lock of a majority that one unreachable server makes fail",
            .is_not[FAULT_IN_TRIAL] = "use restart of a server, or partition",
            .is[FAULT_IN_SIMULATION] = "commands to a node, and connections to it, fail at once",
            .is[FAULT_IN_LIBRARY] = "connections to a server end, and new ones are refused",
        },
    [FAULT_ID_SERVER_SILENT] =
        {
            .name = "server-silent",
            .meaning = "one of several servers hangs for good, and a majority is left: nothing is answered",
            .proof = "no command reaches it, and none is answered",
            .source =
                "redlock-rb#129; redis.io, \"Distributed locks\": a node that is down must not block a client for long",
            .is_not[FAULT_IN_TRIAL] = "use pause-server, or partition",
            .is[FAULT_IN_SIMULATION] = "commands to a node get no reply",
            .is[FAULT_IN_LIBRARY] = "connections to a server are accepted, and nothing on them is answered",
        },
    [FAULT_ID_SLOW_SERVER] =
        {
            .name = "slow-server",
            .meaning = "a server is busy: a script that does not end, or a sleep",
            .proof = "script: a PING is answered -BUSY; sleep: a PING gets no reply",
            .source = "redisson#3332, #3334 (BUSY stopped the renewal); redis.io, \"Diagnosing latency issues\"",
            .is[FAULT_IN_TRIAL] = "a script that does not end, or DEBUG SLEEP",
            .is_not[FAULT_IN_SIMULATION] = "use error-reply, or hold-request",
            .is_not[FAULT_IN_LIBRARY] = "use error-reply, or hold-request",
        },
    [FAULT_ID_STALL_REPLICA] =
        {
            .name = "stall-replica",
            .meaning = "delay the replication to a replica",
            .proof = "the replica does not have its master's last writes",
            .source = "Redis documentation, \"Replication\": it is asynchronous",
            .is_not[FAULT_IN_TRIAL] = "use partition between a master and its replica",
            .is[FAULT_IN_SIMULATION] = "no replication arrives at the replica",
            .is_not[FAULT_IN_LIBRARY] = "hosted programs have servers without replicas",
        },
    [FAULT_ID_STALL_WORKER] =
        {
            .name = "stall-worker",
            .meaning = "a client's worker stands still while its watchdog keeps renewing",
            .proof =
                "no thread is in state T, the worker ran not once; its leases at the server were extended, if it renews",
            .source =
                "RedLock.net#68 (a stuck holder holds for ever); redis.io asks to limit how often a lock is extended",
            .is[FAULT_IN_TRIAL] = "the worker gets no turn",
            .is_not[FAULT_IN_SIMULATION] =
                "the search chooses each task's steps, so a worker may stand still in any schedule",
            .is_not[FAULT_IN_LIBRARY] = "threads of a program cannot be stopped one by one",
        },
    [FAULT_ID_SUSPEND_HOST] =
        {
            .name = "suspend-host",
            .meaning =
                "the hosts of clients sleep, and their monotonic clocks with them, while servers and the store run on",
            .proof = "the clients' monotonic clocks lag the trial's by the time for which they were suspended",
            .source = "swarthy/redis-semaphore#24; clock_gettime(2): CLOCK_MONOTONIC does not count suspended time",
            .is[FAULT_IN_TRIAL] = "SIGSTOP, and a clock that stands still",
            .is_not[FAULT_IN_SIMULATION] = "use pause-client, client-clock-jump",
            .is_not[FAULT_IN_LIBRARY] = "use pause-client, client-clock-jump",
        },
};

enum fault_id fault_id_named(const char *word) {
    for (enum fault_id each = 0; each < FAULT_IDS; each++) {
        const char *old_name = FAULT_ROWS[each].old_name;
        if (strcmp(word, FAULT_ROWS[each].name) == 0 || (old_name && strcmp(word, old_name) == 0)) return each;
    }
    return FAULT_IDS;
}
