/* AtlasDB-style JSON under any bytes. */
#include "tests/fuzz/outside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_outside(data, size, atlas_read);
    return 0;
}
