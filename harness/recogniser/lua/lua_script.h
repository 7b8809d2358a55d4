#pragma once
void lua_script_drop(void *value);
