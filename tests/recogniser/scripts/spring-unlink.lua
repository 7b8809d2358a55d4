-- Spring Integration 7.1 (Apache-2.0), RedisLockRegistry: KEYS the lock; ARGV client
local lockClientId = redis.call('GET', KEYS[1])
if lockClientId == ARGV[1] then
	redis.call('UNLINK', KEYS[1])
	return true
end
return false
