/* The processes and threads of a supervised program: how many run and how many are held in a call, and their memory.
 *
 * A thread *runs* unless one of its calls is held. A process in vfork does not run until its child has another program
 * or has ended. Numbers of threads change only by calls that the supervisor sees (clone, exit), so that nobody running
 * is a fact of bookkeeping, and not read from /proc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROGRAM_PROCESSES = 64, PROGRAM_THREADS = 4096 };

struct program_process {
    pid_t pid; /* 0: this place is free */
    int pid_fd;
    int memory_fd;        /* /proc/PID/mem, which can write where the program itself cannot */
    uint64_t clock_words; /* address of the words that its vDSO reads; 0: it makes system calls */
    int threads, held;
    pid_t maker;        /* the process that made it */
    bool stops_maker;   /* which waits in vfork until this one has another program */
    int vforks;         /* how many of its threads wait so for a child */
    int unborn_vforks;  /* of these, those whose child has not made a call */
    int ended_children; /* which it has not waited for */
    bool is_killed;     /* a signal that ends it was sent by the program */
};

struct program_thread {
    pid_t tid;
    struct program_process *process;
};

struct program {
    struct program_process processes[PROGRAM_PROCESSES];
    struct program_thread threads[PROGRAM_THREADS];
    int thread_count;
};

/* The thread, which is added with its process when it is not known; NULL: it has ended, or there are too many. */
struct program_thread *program_find_thread(struct program *program, pid_t tid);
bool program_knows_thread(struct program *program, pid_t tid);
void program_forget_thread(struct program *program, pid_t tid);
/* Adds a process without threads; NULL: it has ended, or there are too many. */
struct program_process *program_add_process(struct program *program, pid_t pid);
struct program_process *program_known_process(struct program *program, pid_t pid);
/* Its threads and its place; a maker in vfork goes on. */
void program_forget_process(struct program *program, struct program_process *process);
/* All threads but one have ended, which has the process's number now. */
void program_keep_only_thread(struct program *program, struct program_process *process);
/* A maker that was in vfork because of this process goes on. */
void program_end_vfork(struct program *program, struct program_process *process);

/* A number from /proc/TID/status, such as "Tgid:"; 0: the thread has ended. */
uint64_t program_status(pid_t tid, const char *name, int base);
/* The signals that are pending for the thread; bit n - 1: signal n. */
uint64_t program_pending_signals(pid_t tid);
/* A number from /proc/PID/fdinfo/FD, such as "ticks:"; false: it has no such line. */
bool program_descriptor_info(pid_t pid, int fd, const char *name, int base, uint64_t *value);
/* The process that the program's own descriptor (pidfd_open, CLONE_PIDFD) refers to; -1: none, or its end was waited
 * for. */
pid_t program_pidfd_process(const struct program_process *process, int fd);

int program_running(const struct program *program);
bool program_has_ended(const struct program *program);

/* Copies between the program's memory and ours. False: the program has no such memory. */
bool program_read(const struct program_process *process, uint64_t address, void *bytes, size_t size);
bool program_write(const struct program_process *process, uint64_t address, const void *bytes, size_t size);
/* A text that ends with a zero byte, at most size - 1 bytes long. */
bool program_read_text(const struct program_process *process, uint64_t address, char *text, size_t size);
/* A duplicate of the program's descriptor, which the caller closes; -1 with errno. */
int program_duplicate_fd(const struct program_process *process, int fd);
/* Opens the memory anew, after the process has got another program. */
bool program_reopen_memory(struct program_process *process);
