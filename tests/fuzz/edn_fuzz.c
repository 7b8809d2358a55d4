/* Jepsen EDN under any bytes. */
#include "checkers/formats/edn.h"
#include "tests/fuzz/outside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_outside(data, size, edn_read);
    return 0;
}
