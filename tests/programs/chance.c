/* All that C programs take for chance: random bytes, addresses, the order in which threads run. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include "tests/programs/stamps.h"

enum { THREADS = 8, TURNS = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char order[THREADS * TURNS + 1];
static int turns;

static void print_bytes(const char *source, const void *bytes) {
    uint64_t words[2];
    memcpy(words, bytes, sizeof words);
    printf("%s %016" PRIx64 "%016" PRIx64 "\n", source, words[0], words[1]);
}

static void *take_turns(void *number) {
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_mutex_lock(&mutex);
        order[turns++] = (char)('a' + *(int *)number);
        if (turn % 5 == 0) usleep(10);
        pthread_mutex_unlock(&mutex);
        if (turn % 3 == 0) usleep((useconds_t)turn);
    }
    return NULL;
}

int main(void) {
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return 1;
    print_bytes("getrandom", bytes);
    static const char *const DEVICES[] = {"/dev/urandom", "/dev/random"};
    for (int each = 0; each < 2; each++) {
        int fd = open(DEVICES[each], O_RDONLY);
        if (read(fd, bytes, sizeof bytes) != sizeof bytes) return 1;
        print_bytes(DEVICES[each], bytes);
        close(fd);
    }
    print_bytes("AT_RANDOM", (const void *)(uintptr_t)getauxval(AT_RANDOM));
    void *heap = malloc(100);
    printf("addresses %p %p %p\n", (void *)order, (void *)bytes, heap);
    free(heap);
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int each = 0; each < THREADS; each++) {
        numbers[each] = each;
        pthread_create(&threads[each], NULL, take_turns, &numbers[each]);
    }
    for (int each = 0; each < THREADS; each++) pthread_join(threads[each], NULL);
    printf("threads %s\n", order);
    return 0;
}
