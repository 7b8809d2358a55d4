/* scan FILE: adds up all 64-bit words of a file that it maps, the least that reading all of it costs. The cost of a
 * checker is given as a multiple of this, so that a slow machine or a cold cache does not look like a slow checker.
 *
 * Prints the sum. Exit status: 0; 2 the file cannot be read. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
    struct stat stat = {0};
    int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    size_t bytes = fd >= 0 && fstat(fd, &stat) == 0 ? (size_t)stat.st_size : 0;
    const uint64_t *words = bytes ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (words == MAP_FAILED) return fprintf(stderr, "scan: %s\n", argc == 2 ? strerror(errno) : "usage: scan FILE"), 2;
    uint64_t sum = 0;
    for (size_t each = 0; each < bytes / sizeof *words; each++) sum += words[each];
    printf("%" PRIu64 "\n", sum);
    return 0;
}
