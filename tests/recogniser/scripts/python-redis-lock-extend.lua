-- python-redis-lock 4.0 (BSD-2-Clause), EXTEND_SCRIPT: KEYS the lock; ARGV id, seconds
if redis.call("get", KEYS[1]) ~= ARGV[1] then
        return 1
    elseif redis.call("ttl", KEYS[1]) < 0 then
        return 2
    else
        redis.call("expire", KEYS[1], ARGV[2])
        return 0
    end
