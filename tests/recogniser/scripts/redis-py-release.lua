-- redis-py 8.1 (MIT), Lock.LUA_RELEASE_SCRIPT: KEYS the lock; ARGV token
local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        redis.call('del', KEYS[1])
        return 1
