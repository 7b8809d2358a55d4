#include "harness/supervisor/program.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "harness/process/proc_file.h"

enum { FILE_ROOM = 4096 };

static bool process_open(struct program_process *process, pid_t pid) {
    *process = (struct program_process){.pid = pid, .memory_fd = -1};
    process->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process->pid_fd >= 0 && program_reopen_memory(process)) return true;
    if (process->pid_fd >= 0) close(process->pid_fd);
    process->pid = 0;
    return false;
}

struct program_process *program_add_process(struct program *program, pid_t pid) {
    for (int each = 0; each < PROGRAM_PROCESSES; each++)
        if (program->processes[each].pid == 0)
            return process_open(&program->processes[each], pid) ? &program->processes[each] : NULL;
    return NULL;
}

uint64_t program_status(pid_t tid, const char *name, int base) {
    char text[FILE_ROOM];
    uint64_t value = 0;
    if (proc_read(text, sizeof text, "/proc/%d/status", tid)) proc_number(text, name, base, &value);
    return value;
}

uint64_t program_pending_signals(pid_t tid) {
    return program_status(tid, "SigPnd:", 16) | program_status(tid, "ShdPnd:", 16);
}

bool program_descriptor_info(pid_t pid, int fd, const char *name, int base, uint64_t *value) {
    char text[FILE_ROOM];
    return proc_read(text, sizeof text, "/proc/%d/fdinfo/%d", pid, fd) && proc_number(text, name, base, value);
}

pid_t program_pidfd_process(const struct program_process *process, int fd) {
    uint64_t pid;
    return program_descriptor_info(process->pid, fd, "Pid:", 10, &pid) && (pid_t)pid > 0 ? (pid_t)pid : -1;
}

struct program_process *program_known_process(struct program *program, pid_t pid) {
    for (int each = 0; each < PROGRAM_PROCESSES; each++)
        if (pid && program->processes[each].pid == pid) return &program->processes[each];
    return NULL;
}

/* The process of a thread that has just made its first call. */
static struct program_process *process_of(struct program *program, pid_t tid) {
    pid_t pid = (pid_t)program_status(tid, "Tgid:", 10);
    struct program_process *process = program_known_process(program, pid);
    if (process || pid == 0) return process;
    process = program_add_process(program, pid);
    if (!process) return NULL;
    process->maker = (pid_t)program_status(pid, "PPid:", 10);
    struct program_process *maker = program_known_process(program, process->maker);
    process->stops_maker = maker && maker->unborn_vforks > 0;
    if (process->stops_maker) maker->unborn_vforks--;
    /* A copy of the maker's memory, where the vDSO is patched too. */
    if (maker) process->clock_words = maker->clock_words;
    return process;
}

static struct program_thread *known_thread(struct program *program, pid_t tid) {
    for (int each = 0; each < program->thread_count; each++)
        if (program->threads[each].tid == tid) return &program->threads[each];
    return NULL;
}

bool program_knows_thread(struct program *program, pid_t tid) {
    return known_thread(program, tid) != NULL;
}

struct program_thread *program_find_thread(struct program *program, pid_t tid) {
    struct program_thread *thread = known_thread(program, tid);
    if (thread) return thread;
    struct program_process *process = process_of(program, tid);
    if (!process || program->thread_count == PROGRAM_THREADS) return NULL;
    thread = &program->threads[program->thread_count++];
    *thread = (struct program_thread){tid, process};
    return thread;
}

void program_forget_thread(struct program *program, pid_t tid) {
    struct program_thread *thread = known_thread(program, tid);
    if (thread) *thread = program->threads[--program->thread_count];
}

void program_end_vfork(struct program *program, struct program_process *process) {
    struct program_process *maker = program_known_process(program, process->maker);
    if (process->stops_maker && maker) maker->vforks--;
    process->stops_maker = false;
}

static void forget_threads(struct program *program, const struct program_process *process) {
    for (int each = program->thread_count - 1; each >= 0; each--)
        if (program->threads[each].process == process)
            program->threads[each] = program->threads[--program->thread_count];
}

void program_keep_only_thread(struct program *program, struct program_process *process) {
    forget_threads(program, process);
    program->threads[program->thread_count++] = (struct program_thread){process->pid, process};
    process->threads = 1;
}

void program_forget_process(struct program *program, struct program_process *process) {
    program_end_vfork(program, process);
    forget_threads(program, process);
    close(process->pid_fd);
    if (process->memory_fd >= 0) close(process->memory_fd);
    *process = (struct program_process){.pid = 0};
}

int program_running(const struct program *program) {
    int running = 0;
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        const struct program_process *process = &program->processes[each];
        if (process->pid) running += process->threads - process->held - process->vforks;
    }
    return running;
}

bool program_has_ended(const struct program *program) {
    for (int each = 0; each < PROGRAM_PROCESSES; each++)
        if (program->processes[each].pid) return false;
    return true;
}

bool program_read(const struct program_process *process, uint64_t address, void *bytes, size_t size) {
    struct iovec ours = {bytes, size}, theirs = {(void *)(uintptr_t)address, size};
    return process_vm_readv(process->pid, &ours, 1, &theirs, 1, 0) == (ssize_t)size;
}

bool program_write(const struct program_process *process, uint64_t address, const void *bytes, size_t size) {
    struct iovec ours = {(void *)(uintptr_t)bytes, size}, theirs = {(void *)(uintptr_t)address, size};
    return process_vm_writev(process->pid, &ours, 1, &theirs, 1, 0) == (ssize_t)size;
}

/* By small steps, since the text may end just before memory that the program does not have. */
bool program_read_text(const struct program_process *process, uint64_t address, char *text, size_t size) {
    enum { STEP = 16 };
    for (size_t length = 0, some; length < size; length += some) {
        some = STEP - (size_t)((address + length) % STEP);
        if (some > size - length) some = size - length;
        if (!program_read(process, address + length, text + length, some)) return false;
        if (memchr(text + length, '\0', some)) return true;
    }
    return false;
}

int program_duplicate_fd(const struct program_process *process, int fd) {
    return (int)syscall(SYS_pidfd_getfd, process->pid_fd, fd, 0);
}

bool program_reopen_memory(struct program_process *process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", process->pid);
    if (process->memory_fd >= 0) close(process->memory_fd);
    process->memory_fd = open(path, O_RDWR | O_CLOEXEC);
    return process->memory_fd >= 0;
}
