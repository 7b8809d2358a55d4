-- Redisson 4.7.0 (Apache-2.0), RedissonLock.tryLockInnerAsync: KEYS the lock; ARGV lease, owner
if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; return redis.call('pttl', KEYS[1]); 
