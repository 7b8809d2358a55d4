/* reaper: cleans up after a trial, also when its driver was killed.
 *
 * Its standard input is a pipe from the driver. The first line is DIRECTORY, the absolute path of a directory that does
 * not exist: the reaper makes it, so an interrupted driver has made none that nobody knows of, and prints "ready".
 * Each further line "PID" names a process of the trial. At the line "over" and at
 * the end of input - the driver has closed it, or is dead - the reaper kills the processes that are left, removes the
 * shared memory that libfaketime and PostgreSQL leave behind when a process is killed, and removes DIRECTORY, with what
 * it links to in memory. It runs in a session of its own, so no Ctrl-C reaches it. It holds processes by pidfd, so a
 * process id that was given out again is never killed. A line "hunt" asks for more: every process with
 * LOCKSTORM_TRIAL=DIRECTORY in its environment, or that works in DIRECTORY, is killed, too.
 *
 * While it lives it locks DIRECTORY/.reaper. A sibling directory whose lock is free belongs to a trial whose reaper was
 * killed too (with its process group, or by a machine that was switched off): it is removed at the start.
 *
 * After "over" it prints "gone", and the next line is the directory of the driver's next trial.
 *
 * Exit status: 0; 2 bad usage or DIRECTORY cannot be made or locked. Decision 0020. */
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/process/postgres_memory.h"

enum { PROCESSES = 1024, KILL_LIMIT_MS = 5000, ENVIRONMENT_ROOM = 256 * 1024, HUNTS = 10, REMOVAL_LIMIT_S = 5 };
static const struct timespec REMOVAL_PAUSE = {.tv_nsec = 20000000};

static const char COOKIE[] = "LOCKSTORM_TRIAL=", LOCK[] = ".reaper", PREFIX[] = "lockstorm-",
                  MEMORY[] = "/dev/shm/lockstorm-";

struct held_process {
    int pid;
    int fd; /* -1: it had ended before it was opened */
};

static struct held_process processes[PROCESSES];
static int process_count;

static void path_join(char *path, size_t size, const char *directory, const char *name) {
    if (snprintf(path, size, "%s/%s", directory, name) >= (int)size) abort();
}

static int reaper_remove_entry(const char *path, const struct stat *stat, int type, struct FTW *walk) {
    (void)stat, (void)type, (void)walk;
    remove(path);
    return 0;
}

static time_t reaper_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Again and again: a process that outlives its parent by a moment, as PostgreSQL's children do, may still write. */
static void remove_tree(const char *path) {
    for (time_t until_s = reaper_now_s() + REMOVAL_LIMIT_S;;) {
        bool is_last = reaper_now_s() > until_s;
        nftw(path, reaper_remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        if (is_last || access(path, F_OK) != 0) return;
        nanosleep(&REMOVAL_PAUSE, NULL);
    }
}

static int remove_segment_of(const char *path, const struct stat *stat, int type, struct FTW *walk) {
    (void)stat, (void)type;
    if (strcmp(path + walk->base, POSTGRES_PID_FILE) == 0) postgres_memory_remove(path);
    return 0;
}

/* Removes the part of a trial that lies in memory, to which a link leads. The directory is private, so lockstorm has
 * made the link. */
static void memory_remove(const char *link) {
    char target[4096];
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return;
    target[length] = '\0';
    if (strncmp(target, MEMORY, sizeof MEMORY - 1) != 0) return;
    nftw(target, remove_segment_of, 16, FTW_PHYS | FTW_MOUNT);
    remove_tree(target);
}

/* Removes a trial's directory, with what its servers have left elsewhere. */
static void trial_remove(const char *directory) {
    char path[8192];
    DIR *servers = opendir(directory);
    for (struct dirent *entry; servers && (entry = readdir(servers));) {
        if (entry->d_name[0] == '.') continue;
        path_join(path, sizeof path, directory, entry->d_name);
        nftw(path, remove_segment_of, 16, FTW_PHYS | FTW_MOUNT);
        memory_remove(path); /* with a server's data, to which only the link leads */
    }
    if (servers) closedir(servers);
    remove_tree(directory);
}

/* Returns the descriptor that keeps the lock, or -1. The lock file is locked before it gets its name, so an unlocked
 * one means that its owner is dead. */
static int directory_lock(const char *directory) {
    char fresh[4096], name[4096];
    path_join(fresh, sizeof fresh, directory, ".reaper.new");
    path_join(name, sizeof name, directory, LOCK);
    int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && rename(fresh, name) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Removes the directories of trials whose reaper is dead. */
static void siblings_sweep(const char *directory) {
    char parent[4096], path[4096], lock[8192];
    path_join(parent, sizeof parent, directory, "..");
    DIR *siblings = opendir(parent);
    if (!siblings) return;
    for (struct dirent *entry; (entry = readdir(siblings));) {
        struct stat stat;
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0) continue;
        path_join(path, sizeof path, parent, entry->d_name);
        path_join(lock, sizeof lock, path, LOCK);
        if (lstat(path, &stat) < 0 || !S_ISDIR(stat.st_mode) || stat.st_uid != geteuid()) continue;
        int fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) trial_remove(path);
        close(fd);
    }
    closedir(siblings);
}

static void reaper_process_end(const struct held_process *process) {
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

static bool process_has_ended(const struct held_process *process) {
    return process->fd < 0 || poll(&(struct pollfd){.fd = process->fd, .events = POLLIN}, 1, 0) > 0;
}

/* Forgets the processes that have ended: a trial that kills and restarts has many in its life, but few at once. */
static void processes_clear(void) {
    int left = 0;
    for (int each = 0; each < process_count; each++) {
        if (process_has_ended(&processes[each])) reaper_process_end(&processes[each]);
        else processes[left++] = processes[each];
    }
    process_count = left;
}

static void process_add(int pid) {
    if (pid <= 0) return;
    if (process_count >= PROCESSES / 2) processes_clear();
    if (process_count == PROCESSES) return;
    processes[process_count++] = (struct held_process){pid, (int)syscall(SYS_pidfd_open, pid, 0)};
}

/* Whether a process was started with this variable in its environment; only the beginning of a long one is read. */
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

/* Whether a process works in the directory: one that writes its title over its environment, as PostgreSQL's do. */
static bool works_in(const char *number, const char *directory) {
    char path[64], place[4096];
    snprintf(path, sizeof path, "/proc/%.16s/cwd", number);
    ssize_t length = readlink(path, place, sizeof place - 1);
    if (length < 0) return false;
    place[length] = '\0';
    size_t own = strlen(directory);
    return strncmp(place, directory, own) == 0 && place[own] == '/';
}

/* Kills the descendants of the trial's processes. Their process ids are not known, but their environment names the
 * directory, or they work in it. Repeated until none is found, because one may start another meanwhile. */
static void hunt(const char *directory) {
    char wanted[4096];
    int found = 1;
    if (snprintf(wanted, sizeof wanted, "%s%s", COOKIE, directory) >= (int)sizeof wanted) abort();
    for (int round = 0; found > 0 && round < HUNTS; round++) {
        DIR *all = opendir("/proc");
        found = 0;
        for (struct dirent *entry; all && (entry = readdir(all));) {
            int pid = atoi(entry->d_name);
            struct held_process process = {pid, pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1};
            if (process.fd < 0) continue;
            bool ours = has_environment(entry->d_name, wanted) || works_in(entry->d_name, directory);
            if (pid == getpid() || !ours) close(process.fd);
            else found++, reaper_process_end(&process);
        }
        if (all) closedir(all);
    }
}

static void say(const char *word) {
    puts(word);
    fflush(stdout);
}

/* Looks after a trial until it is over, and removes what is left. False: the driver has no further trial. */
static bool trial_serve(const char *directory) {
    bool hunts = false, is_over = false;
    for (char line[32]; !is_over && fgets(line, sizeof line, stdin);) {
        is_over = strcmp(line, "over\n") == 0;
        if (strcmp(line, "hunt\n") == 0) hunts = true;
        else process_add(atoi(line));
    }
    for (int each = 0; each < process_count; each++) reaper_process_end(&processes[each]);
    process_count = 0;
    if (hunts) hunt(directory);
    trial_remove(directory);
    return is_over;
}

/* Makes the directory and locks it. Returns the descriptor that keeps the lock, or -1. */
static int reaper_directory_make(const char *directory) {
    if (mkdir(directory, 0700) < 0) return -1;
    int lock = directory_lock(directory);
    if (lock < 0) rmdir(directory);
    return lock;
}

/* Reads the directory of the next trial. */
static bool directory_read(char *directory, size_t size) {
    if (!fgets(directory, (int)size, stdin)) return false;
    directory[strcspn(directory, "\n")] = '\0';
    return true;
}

int main(int argc, char **argv) {
    char directory[4096];
    (void)argv;
    if (argc != 1) {
        fprintf(stderr, "reaper: usage: reaper\n");
        return 2;
    }
    setsid();
    signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN), signal(SIGPIPE, SIG_IGN);
    for (bool goes_on = true; goes_on && directory_read(directory, sizeof directory);) {
        int lock = reaper_directory_make(directory);
        if (lock < 0) {
            fprintf(stderr, "reaper: %s: %s\n", directory, strerror(errno));
            return 2;
        }
        siblings_sweep(directory);
        say("ready");
        goes_on = trial_serve(directory);
        close(lock);
        if (goes_on) say("gone");
    }
    return 0;
}
