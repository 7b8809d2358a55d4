/* The machine code that stands in the place of the vDSO's functions in a supervised program.
 *
 * The code of clock_gettime reads the words behind it, which the supervisor rewrites whenever the program's clocks
 * move; for clocks that it does not know it makes the system call. The others always make the system call; getrandom
 * says ENOSYS, after which the C library makes it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* At the end of the code of clock_gettime, in this order; seconds and ns. */
struct vdso_words {
    int64_t wall_s, wall_ns, mono_s, mono_ns;
};

struct vdso_function {
    const char *name; /* of the symbol in the vDSO; NULL ends the table */
    const unsigned char *code, *end;
};

/* The first is the function that ends with a struct vdso_words; the others may be missing in a vDSO. Empty on a machine
 * whose vDSO cannot be patched: there it is hidden. */
extern const struct vdso_function VDSO_FUNCTIONS[];
