-- A counter with an end, which is no lock: KEYS the counter; ARGV seconds
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return count
