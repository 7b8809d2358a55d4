-- python-redis-lock 4.0 (BSD-2-Clause), UNLOCK_SCRIPT: KEYS lock, signal; ARGV id, time of the signal
if redis.call("get", KEYS[1]) ~= ARGV[1] then
        return 1
    else
        redis.call("del", KEYS[2])
        redis.call("lpush", KEYS[2], 1)
        redis.call("pexpire", KEYS[2], ARGV[2])
        redis.call("del", KEYS[1])
        return 0
    end
