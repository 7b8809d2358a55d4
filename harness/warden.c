/* warden DIRECTORY: cleans up after a trial, also when its driver was killed.
 *
 * Its standard input is a pipe from the driver. Each line "PID" names a process of the trial. At the end of input - the
 * driver has closed it, or is dead - the warden kills the processes that are left, removes the shared memory that
 * libfaketime and PostgreSQL leave behind when a process is killed, and removes DIRECTORY, with what it links to in
 * memory. It stands in a session of its own, so no Ctrl-C reaches it. Processes are held by pidfd: a number that was
 * given out again is never hit. A line "hunt" asks for more: whoever has LOCKSTORM_TRIAL=DIRECTORY in the environment
 * ends, too.
 *
 * While it lives it locks DIRECTORY/.warden. A sibling directory whose lock nobody holds belongs to a trial whose
 * warden was killed too (a whole process group, a machine that was switched off): it is removed at the start.
 *
 * Prints "ready" once DIRECTORY is in its care. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PROCESSES = 1024,
    KILL_LIMIT_MS = 5000,
    SEGMENT_LINE = 7,
    ENVIRONMENT_ROOM = 256 * 1024,
    HUNTS = 10,
    REMOVALS = 100
};
static const struct timespec REMOVAL_PAUSE = {.tv_nsec = 20000000};

static const char COOKIE[] = "LOCKSTORM_TRIAL=", LOCK[] = ".warden", PREFIX[] = "lockstorm-",
                  MEMORY[] = "/dev/shm/lockstorm-";

struct process {
    int pid;
    int fd; /* -1: it had ended before we looked */
};

static struct process processes[PROCESSES];
static int process_count;

static void join(char *path, size_t size, const char *directory, const char *name) {
    if (snprintf(path, size, "%s/%s", directory, name) >= (int)size) abort();
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *walk) {
    (void)stat, (void)type, (void)walk;
    remove(path);
    return 0;
}

/* Whoever outlives its parent by a moment, as PostgreSQL's children do, may write something while we remove. */
static void remove_tree(const char *path) {
    for (int tries = 0; tries < REMOVALS; tries++) {
        nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        if (access(path, F_OK) != 0) return;
        nanosleep(&REMOVAL_PAUSE, NULL);
    }
}

/* PostgreSQL's, as it says itself: its own number in the first line, the segment's behind the key in the seventh. Only
 * the one that this very process has made. */
static void segment_remove(const char *directory) {
    char path[12288], line[256] = "";
    long creator = 0;
    int segment = -1;
    struct shmid_ds about;
    join(path, sizeof path, directory, "postmaster.pid");
    FILE *file = fopen(path, "re");
    if (!file) return;
    for (int number = 1; number <= SEGMENT_LINE && fgets(line, sizeof line, file); number++)
        if (number == 1) creator = atol(line);
    if (sscanf(line, "%*u %d", &segment) == 1 && shmctl(segment, IPC_STAT, &about) == 0 && about.shm_cpid == creator)
        shmctl(segment, IPC_RMID, NULL);
    fclose(file);
}

/* What of a trial lies in memory: a link leads there, which only we can have made. */
static void memory_remove(const char *link) {
    char target[4096];
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return;
    target[length] = '\0';
    if (strncmp(target, MEMORY, sizeof MEMORY - 1) == 0) remove_tree(target);
}

/* A trial's directory, with what its servers have left elsewhere. */
static void trial_remove(const char *directory) {
    char path[8192];
    DIR *servers = opendir(directory);
    for (struct dirent *entry; servers && (entry = readdir(servers));) {
        if (entry->d_name[0] == '.') continue;
        join(path, sizeof path, directory, entry->d_name);
        segment_remove(path);
        memory_remove(path);
    }
    if (servers) closedir(servers);
    remove_tree(directory);
}

/* Locked before it gets its name: whoever sees it unlocked may know that its owner is dead. */
static bool take_care_of(const char *directory) {
    char fresh[4096], name[4096];
    join(fresh, sizeof fresh, directory, ".warden.new");
    join(name, sizeof name, directory, LOCK);
    int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && rename(fresh, name) == 0;
}

static void sweep(const char *directory) {
    char parent[4096], path[4096], lock[8192];
    join(parent, sizeof parent, directory, "..");
    DIR *siblings = opendir(parent);
    if (!siblings) return;
    for (struct dirent *entry; (entry = readdir(siblings));) {
        struct stat stat;
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0) continue;
        join(path, sizeof path, parent, entry->d_name);
        join(lock, sizeof lock, path, LOCK);
        if (lstat(path, &stat) < 0 || !S_ISDIR(stat.st_mode) || stat.st_uid != geteuid()) continue;
        int fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) trial_remove(path);
        close(fd);
    }
    closedir(siblings);
}

static void process_end(const struct process *process) {
    if (process->fd >= 0) {
        syscall(SYS_pidfd_send_signal, process->fd, SIGKILL, NULL, 0);
        poll(&(struct pollfd){.fd = process->fd, .events = POLLIN}, 1, KILL_LIMIT_MS);
        close(process->fd);
    }
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/faketime_shm_%d", process->pid);
    unlink(path);
    snprintf(path, sizeof path, "/dev/shm/sem.faketime_sem_%d", process->pid);
    unlink(path);
}

static bool process_has_ended(const struct process *process) {
    return process->fd < 0 || poll(&(struct pollfd){.fd = process->fd, .events = POLLIN}, 1, 0) > 0;
}

/* A trial that kills and restarts has many processes in its life, and few at once. */
static void processes_clear(void) {
    int left = 0;
    for (int each = 0; each < process_count; each++) {
        if (process_has_ended(&processes[each])) process_end(&processes[each]);
        else processes[left++] = processes[each];
    }
    process_count = left;
}

static void process_add(int pid) {
    if (pid <= 0) return;
    if (process_count >= PROCESSES / 2) processes_clear();
    if (process_count == PROCESSES) return;
    processes[process_count++] = (struct process){pid, (int)syscall(SYS_pidfd_open, pid, 0)};
}

/* Whether a process was started with this in its environment; the beginning of a long one is looked at. */
static bool has_environment(const char *number, const char *wanted) {
    static char environment[ENVIRONMENT_ROOM];
    char path[64];
    snprintf(path, sizeof path, "/proc/%.16s/environ", number);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t length = 0;
    for (ssize_t got; (got = read(fd, environment + length, sizeof environment - length)) > 0;) length += (size_t)got;
    close(fd);
    return memmem(environment, length, wanted, strlen(wanted) + 1) != NULL;
}

/* What processes of the trial have started, and what these have: nobody told us their numbers, but their environment
 * names the directory. Until there is none: one may start another while we look. */
static void hunt(const char *directory) {
    char wanted[4096];
    int found = 1;
    if (snprintf(wanted, sizeof wanted, "%s%s", COOKIE, directory) >= (int)sizeof wanted) abort();
    for (int round = 0; found > 0 && round < HUNTS; round++) {
        DIR *all = opendir("/proc");
        found = 0;
        for (struct dirent *entry; all && (entry = readdir(all));) {
            int pid = atoi(entry->d_name);
            struct process process = {pid, pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1};
            if (process.fd < 0) continue;
            if (pid == getpid() || !has_environment(entry->d_name, wanted)) close(process.fd);
            else found++, process_end(&process);
        }
        if (all) closedir(all);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "warden: usage: warden DIRECTORY\n"), 2;
    setsid();
    signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN), signal(SIGPIPE, SIG_IGN);
    if (!take_care_of(argv[1])) return fprintf(stderr, "warden: %s: %s\n", argv[1], strerror(errno)), 2;
    sweep(argv[1]);
    puts("ready");
    fflush(stdout);
    bool hunts = false;
    for (char line[32]; fgets(line, sizeof line, stdin);) {
        if (strcmp(line, "hunt\n") == 0) hunts = true;
        else process_add(atoi(line));
    }
    for (int each = 0; each < process_count; each++) process_end(&processes[each]);
    if (hunts) hunt(argv[1]);
    trial_remove(argv[1]);
    return 0;
}
