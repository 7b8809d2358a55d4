/* Makes a server a zygote (harness/process/zygote_service.h) that does not know of it: takes the place of its main. The
 * loader and OpenSSL's tables are half of what the start of a redis-server costs. Decision 0092. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/process/preload/preload.h"
#include "harness/process/zygote_service.h"

/* OPENSSL_INIT_LOAD_CRYPTO_STRINGS, OPENSSL_INIT_LOAD_CONFIG and OPENSSL_INIT_ATFORK: what redis-server asks for. */
enum { OPENSSL_AS_REDIS = 0x2 | 0x40 | 0x20000 };

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

int __libc_start_main(main_function *program, int count, char **words, void (*begin)(void), void (*end)(void),
                      void (*loader_end)(void), void *stack_end);

static main_function *real_main;

static void *symbol_find(const char *name) {
    return dlsym(RTLD_DEFAULT, name);
}

/* What every child would do first; about a fifth of the time that it takes until it listens. */
static void openssl_begin(void) {
    int (*init)(uint64_t, const void *);
    int (*poll)(void);
    *(void **)&init = symbol_find("OPENSSL_init_crypto");
    *(void **)&poll = symbol_find("RAND_poll");
    if (init && init(OPENSSL_AS_REDIS, NULL) && poll) poll();
}

static int main_of_zygote(int count, char **words, char **environment) {
    if (!getenv(ZYGOTE_VARIABLE)) return real_main(count, words, environment);
    openssl_begin();
    zygote_begin(&count, &words);
    preload_map_clock();
    return real_main(count, words, environ);
}

int __libc_start_main(main_function *program, int count, char **words, void (*begin)(void), void (*end)(void),
                      void (*loader_end)(void), void *stack_end) {
    start_function *start;
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = program;
    return start(main_of_zygote, count, words, begin, end, loader_end, stack_end);
}
