-- ShedLock 7.10 (Apache-2.0), InternalRedisLockProvider: KEYS the lock; ARGV owner, lease
if redis.call('get', KEYS[1]) == ARGV[1] then
   return redis.call('pexpire', KEYS[1], ARGV[2])
else
   return 0
end
