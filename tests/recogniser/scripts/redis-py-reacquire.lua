-- redis-py 8.1 (MIT), Lock.LUA_REACQUIRE_SCRIPT
local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        redis.call('pexpire', KEYS[1], ARGV[2])
        return 1
