/* Jepsen EDN under any bytes. */
#include "tests/fuzz/outside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_outside(data, size, edn_read);
    return 0;
}
