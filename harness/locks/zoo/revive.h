/* The renewal of set-nx-px as several libraries had it: for its owner, and when the key is gone. */
#pragma once

static const char REVIVE[] = "local owner = redis.call('get', KEYS[1]) "
                             "if owner and owner ~= ARGV[1] then return 0 end "
                             "redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) "
                             "return 1";
