#include "harness/recogniser/lua/lua_script.h"

#include <stdlib.h>

void lua_script_drop(void *value) {
    free(value);
}
