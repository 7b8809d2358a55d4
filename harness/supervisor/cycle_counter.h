/* The processor's counter (rdtsc), as Go's runtime reads it. Before Go 1.22 each thread's random numbers, and with them
 * the order of a map and the choice of a select, begin with it (src/runtime/asm_amd64.s, runtime.cputicks). */
#pragma once

#include "harness/supervisor/program.h"

/* Replaces the instructions in the code of a Go program that has just been loaded, so that they read 0. `headers` and
 * `count`: its auxiliary vector's AT_PHDR and AT_PHNUM. Any other program, and a Go program whose code looks different,
 * stays as it is. */
void cycle_counter_stop(const struct program_process *process, uint64_t headers, uint64_t count);
