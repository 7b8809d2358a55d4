#include "harness/supervisor/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/process/proc_file.h"
#include "harness/scheduler/clock.h"
#include "harness/scheduler/hang_limit.h"
#include "harness/supervisor/calls.h"
#include "harness/supervisor/cycle_counter.h"
#include "harness/supervisor/vdso_code.h"

enum { VDSO_MOST = 16384, EXEC_LIMIT_MS = 60000 };

/* --- the vDSO --- */

struct vdso_image {
    unsigned char bytes[VDSO_MOST];
    size_t size;
    const Elf64_Sym *symbols;
    const char *names;
    uint32_t symbol_count;
};

static bool in_image(const struct vdso_image *image, uint64_t offset, uint64_t size) {
    return offset <= image->size && size <= image->size - offset;
}

/* Finds the tables of symbols. False: it does not look like a vDSO. */
static bool vdso_parse(struct vdso_image *image) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)image->bytes;
    const Elf64_Dyn *entry = NULL, *end = NULL;
    if (!in_image(image, 0, sizeof *header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
    for (int each = 0; each < header->e_phnum; each++) {
        uint64_t at = header->e_phoff + (uint64_t)each * sizeof(Elf64_Phdr);
        if (!in_image(image, at, sizeof(Elf64_Phdr))) return false;
        const Elf64_Phdr *segment = (const Elf64_Phdr *)(const void *)(image->bytes + at);
        if (segment->p_type != PT_DYNAMIC || !in_image(image, segment->p_offset, segment->p_filesz)) continue;
        entry = (const Elf64_Dyn *)(const void *)(image->bytes + segment->p_offset);
        end = entry + segment->p_filesz / sizeof *entry;
    }
    for (; entry && entry < end && entry->d_tag != DT_NULL; entry++) {
        uint64_t at = entry->d_un.d_ptr;
        if (!in_image(image, at, 8)) continue;
        if (entry->d_tag == DT_SYMTAB) image->symbols = (const Elf64_Sym *)(const void *)(image->bytes + at);
        if (entry->d_tag == DT_STRTAB) image->names = (const char *)(image->bytes + at);
        /* The second word of the hash table is the number of symbols. */
        if (entry->d_tag == DT_HASH) memcpy(&image->symbol_count, image->bytes + at + 4, sizeof image->symbol_count);
    }
    return image->symbols && image->names && image->symbol_count > 0;
}

static const Elf64_Sym *vdso_symbol(const struct vdso_image *image, const char *name) {
    for (uint32_t each = 0; each < image->symbol_count; each++) {
        const Elf64_Sym *symbol = &image->symbols[each];
        uint64_t at = (uint64_t)((const unsigned char *)symbol - image->bytes);
        if (!in_image(image, at, sizeof *symbol)) return NULL;
        uint64_t text = (uint64_t)((const unsigned char *)image->names - image->bytes) + symbol->st_name;
        size_t length = strlen(name) + 1;
        if (!in_image(image, text, length) || memcmp(image->bytes + text, name, length) != 0) continue;
        return in_image(image, symbol->st_value, symbol->st_size) ? symbol : NULL;
    }
    return NULL;
}

/* False: this vDSO, or this kernel, does not allow it; the vDSO is as it was, or unused. */
static bool vdso_patch(struct program_process *process, uint64_t base) {
    static struct vdso_image image;
    memset(&image, 0, sizeof image);
    ssize_t got = pread(process->memory_fd, image.bytes, sizeof image.bytes, (off_t)base);
    image.size = got > 0 ? (size_t)got : 0;
    if (!vdso_parse(&image)) return false;
    process->clock_words = 0;
    for (const struct vdso_function *each = VDSO_FUNCTIONS; each->name; each++) {
        const Elf64_Sym *symbol = vdso_symbol(&image, each->name);
        size_t size = (size_t)(each->end - each->code);
        if (!symbol && each != VDSO_FUNCTIONS) continue;
        if (!symbol || symbol->st_size < size) return false;
        if (pwrite(process->memory_fd, each->code, size, (off_t)(base + symbol->st_value)) != (ssize_t)size)
            return false;
        if (each == VDSO_FUNCTIONS) process->clock_words = base + symbol->st_value + size - sizeof(struct vdso_words);
    }
    return process->clock_words != 0;
}

/* --- the auxiliary vector --- */

struct auxiliary {
    Elf64_auxv_t entries[64];
    size_t count;
};

static bool auxiliary_read(const struct program_process *process, struct auxiliary *auxiliary) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/auxv", process->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, auxiliary->entries, sizeof auxiliary->entries) : -1;
    if (fd >= 0) close(fd);
    auxiliary->count = got > 0 ? (size_t)got / sizeof auxiliary->entries[0] : 0;
    return auxiliary->count > 0;
}

static uint64_t auxiliary_value(const struct auxiliary *auxiliary, uint64_t type) {
    for (size_t each = 0; each < auxiliary->count; each++)
        if (auxiliary->entries[each].a_type == type) return auxiliary->entries[each].a_un.a_val;
    return 0;
}

/* Where the program's stack begins: field 28 of its stat, counted from the end of its name. */
static uint64_t stack_start(const struct program_process *process) {
    enum { FIELD = 28, AFTER_NAME = 3 };
    char line[1024];
    const char *at = proc_read(line, sizeof line, "/proc/%d/stat", process->pid) ? strrchr(line, ')') : NULL;
    for (int field = AFTER_NAME - 1; at && field < FIELD; field++) at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* The program finds its auxiliary vector on its stack, behind its arguments and its environment; its bytes are known.
 * The entry for the vDSO becomes AT_IGNORE, so that the program makes system calls. */
static bool vdso_hide(const struct program_process *process, const struct auxiliary *auxiliary) {
    enum { STEP = 4096, STACK_MOST = 4 << 20 };
    size_t size = 2 * sizeof auxiliary->entries[0], entry = 0;
    uint64_t stack = stack_start(process) & ~UINT64_C(7), type = AT_IGNORE;
    char bytes[STEP + 2 * sizeof auxiliary->entries[0]];
    while (entry < auxiliary->count && auxiliary->entries[entry].a_type != AT_SYSINFO_EHDR) entry++;
    for (uint64_t at = stack; stack && at < stack + STACK_MOST; at += STEP) {
        ssize_t got = pread(process->memory_fd, bytes, sizeof bytes, (off_t)at);
        for (ssize_t each = 0; each + (ssize_t)size <= got; each += 8) {
            uint64_t place = at + (uint64_t)each + entry * sizeof auxiliary->entries[0];
            if (memcmp(bytes + each, auxiliary->entries, size) == 0)
                return pwrite(process->memory_fd, &type, sizeof type, (off_t)place) == sizeof type;
        }
        if (got <= 0) break;
    }
    return false;
}

static void image_prepare(struct supervisor *supervisor, struct program_process *process) {
    struct auxiliary auxiliary;
    if (!program_reopen_memory(process) || !auxiliary_read(process, &auxiliary)) {
        supervisor_give_up(supervisor, "the memory of process %d cannot be opened: %s", process->pid, strerror(errno));
        return;
    }
    uint64_t at = auxiliary_value(&auxiliary, AT_RANDOM), vdso = auxiliary_value(&auxiliary, AT_SYSINFO_EHDR);
    uint64_t chance[2] = {random_next(&supervisor->random), random_next(&supervisor->random)};
    if (at) pwrite(process->memory_fd, chance, sizeof chance, (off_t)at);
    cycle_counter_stop(process, auxiliary_value(&auxiliary, AT_PHDR), auxiliary_value(&auxiliary, AT_PHNUM));
    if (!vdso) return;
    if (vdso_patch(process, vdso)) supervisor_publish_clock_to(supervisor, process);
    else if (!vdso_hide(process, &auxiliary))
        supervisor_give_up(supervisor, "the clock of process %d cannot be replaced", process->pid);
}

/* --- a new program in a process --- */

/* Waits until the thread stops: at the new image, or, because it is asked to, on its way back from an exec that has
 * failed (as on each directory of PATH). Meanwhile a maker that was in vfork goes on, whose next call is held for its
 * turn. False: it has ended. */
static bool await_stop(struct supervisor *supervisor, const struct program_process *process, pid_t tid, int *status) {
    int64_t until_ns = hang_limit_deadline_ns(EXEC_LIMIT_MS);
    struct pollfd fds[] = {{.fd = supervisor->signal_fd, .events = POLLIN},
                           {.fd = supervisor->listener, .events = POLLIN}};
    /* A thread that was not the first one has the number of the first one after an exec. */
    while (waitpid(process->pid, status, __WALL | WNOHANG) != process->pid &&
           waitpid(tid, status, __WALL | WNOHANG) != tid) {
        held_calls_hold_next(supervisor);
        if (hang_limit_is_over(until_ns)) return false;
        hang_limit_poll(fds, 2, until_ns);
        supervisor_drain_signals(supervisor);
    }
    return WIFSTOPPED(*status);
}

void image_exec(const struct program_call *call) {
    pid_t tid = call->tid;
    int status = 0;
    if (ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACEEXEC) != 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0) {
        supervisor_give_up(call->supervisor, "the program cannot be attached to (ptrace: %s)", strerror(errno));
        return;
    }
    supervisor_pass(call);
    if (!await_stop(call->supervisor, call->process, tid, &status)) {
        call->supervisor->root_ended = call->process->pid == call->supervisor->root;
        if (call->supervisor->root_ended) call->supervisor->status = status;
        return;
    }
    if (status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
        return;
    }
    held_calls_drop(call->supervisor, call->process, 0);
    program_keep_only_thread(&call->supervisor->program, call->process);
    program_end_vfork(&call->supervisor->program, call->process);
    image_prepare(call->supervisor, call->process);
    ptrace(PTRACE_DETACH, call->process->pid, NULL, NULL);
}

/* --- the first process --- */

/* The listener goes to the supervisor over a socket, because not every sandbox lets descriptors be taken. */
static bool send_listener(int socket, int listener) {
    char byte = 0;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec content = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &content, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.header), &listener, sizeof listener);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

static int receive_listener(int socket) {
    char byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    int listener = -1;
    struct iovec content = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &content, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof listener);
    return listener;
}

/* In the child. Addresses without chance: what a program derives from them is the same again. */
_Noreturn static void become_program(int socket, pid_t parent, const int *streams, char *const *words) {
    const char *failed = "seccomp";
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    personality((unsigned long)personality(0xffffffff) | ADDR_NO_RANDOMIZE);
    for (int each = 0; streams && each <= STDERR_FILENO; each++)
        if (dup2(streams[each], each) != each) _exit(127);
    int listener = call_filter_install();
    if (listener >= 0 && send_listener(socket, listener)) {
        close(listener);
        execvp(words[0], words);
        failed = words[0];
    }
    fprintf(stderr, "supervisor: %s: %s\n", failed, strerror(errno));
    _exit(127);
}

bool image_start(struct supervisor *supervisor, char *const *words) {
    int sockets[2];
    pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return false;
    supervisor->root = fork();
    if (supervisor->root == 0) become_program(sockets[1], parent, supervisor->streams, words);
    close(sockets[1]);
    supervisor->listener = supervisor->root > 0 ? receive_listener(sockets[0]) : -1;
    close(sockets[0]);
    if (supervisor->listener < 0) {
        supervisor->root_ended = supervisor->root > 0 && waitpid(supervisor->root, &supervisor->status, 0) > 0;
        bool killed = supervisor->root_ended && WIFSIGNALED(supervisor->status);
        supervisor_give_up(supervisor,
                           killed ? "the program ended before it began"
                                  : "calls of programs cannot be handed over here (seccomp user notification)");
        return false;
    }
    fcntl(supervisor->listener, F_SETFL, O_NONBLOCK);
    struct program_process *process = program_add_process(&supervisor->program, supervisor->root);
    if (!process) supervisor_give_up(supervisor, "the program ended before it began");
    else program_keep_only_thread(&supervisor->program, process);
    return process != NULL;
}
