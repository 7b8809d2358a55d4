#include "faults/postgres.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "faults/process.h"
#include "faults/process_end.h"

enum { FAMILY = 256, TEXT_ROOM = 4096, STOP_LIMIT_US = 5000000, NAP_US = 100 };

/* What a client may begin with, asking for encryption: one letter answers it. */
static const unsigned char SSL_REQUEST[] = {0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f};

/* The server first, then its children: once it stands still there are no new ones. */
struct family {
    int pid[FAMILY];
    int count;
};

bool is_postgres(const struct fault_target *target) {
    return target->service && strcmp(target->service, "postgres") == 0;
}

bool postgres_ask(const struct fault_target *target, const char *statement, int64_t *number,
                  struct fault_report *report) {
    if (!target->means->server_query) return fault_fail(report, "nobody can ask %s", target->name);
    *number = target->means->server_query(target->server, statement);
    return *number != INT64_MIN || fault_fail(report, "%s does not answer", target->name);
}

bool postgres_answers(const struct fault_target *target, int limit_ms) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char letter;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || strlen(target->socket) >= sizeof address.sun_path) abort();
    strcpy(address.sun_path, target->socket);
    bool answers = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                   send(fd, SSL_REQUEST, sizeof SSL_REQUEST, MSG_NOSIGNAL) == sizeof SSL_REQUEST &&
                   poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, limit_ms) > 0 && recv(fd, &letter, 1, 0) == 1;
    close(fd);
    return answers;
}

static void family_read(int pid, struct family *family) {
    char path[64], children[TEXT_ROOM] = "";
    *family = (struct family){.pid = {pid}, .count = 1};
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *file = fopen(path, "re");
    if (!file) return;
    if (!fgets(children, sizeof children, file)) children[0] = '\0';
    fclose(file);
    for (char *rest = children, *word; family->count < FAMILY && (word = strtok_r(rest, " ", &rest));)
        family->pid[family->count++] = atoi(word);
}

/* One that has ended meanwhile stands still, too. */
static bool stop_one(int pid, struct fault_report *report) {
    int threads, stopped;
    if (kill(pid, SIGSTOP) < 0) return true;
    for (long waited_us = 0; waited_us < STOP_LIMIT_US; waited_us += NAP_US) {
        if (!process_look(pid, &threads, &stopped) || stopped == threads) return true;
        process_nap_us(NAP_US);
    }
    return fault_fail(report, "process %d did not stop", pid);
}

bool postgres_stop(const struct fault_target *target, bool *sent, struct fault_report *report) {
    struct family family;
    *sent = true;
    target->means->process_stopped(target->means->conductor, target->pid, true);
    if (!stop_one(target->pid, report)) return false;
    family_read(target->pid, &family);
    for (int each = 1; each < family.count; each++)
        if (!stop_one(family.pid[each], report)) return false;
    return true;
}

/* One after the other: each may have been sent a statement meanwhile, and whose is first must not be a race. */
bool postgres_go_on(const struct fault_target *target, bool *sent, struct fault_report *report) {
    struct family family;
    (void)report;
    if (!*sent) return true;
    *sent = false;
    if (target->means->process_stopped(target->means->conductor, target->pid, false) > 0) return true;
    family_read(target->pid, &family);
    for (int each = family.count - 1; each >= 0; each--) {
        kill(family.pid[each], SIGCONT);
        target->means->process_catch_up(target->means->conductor, family.pid[each]);
    }
    return true;
}

bool postgres_prove_stopped(const struct fault_target *target, struct fault_report *report) {
    struct family family;
    int threads, stopped, still = 0;
    family_read(target->pid, &family);
    for (int each = 0; each < family.count; each++)
        still += process_look(family.pid[each], &threads, &stopped) && stopped == threads;
    snprintf(report->text, sizeof report->text, "%d of %d processes in state T", still, family.count);
    return still == family.count;
}

/* Its children would see by themselves that it has ended, each in its own time, and may tell their clients before they
 * end: but here nobody gets any. */
bool postgres_end(int pid, struct fault_report *report) {
    struct family family;
    struct fault_report unused;
    if (!stop_one(pid, report)) return false;
    family_read(pid, &family);
    for (int each = 1; each < family.count; each++) process_end(family.pid[each], &unused);
    return process_end(pid, report);
}
