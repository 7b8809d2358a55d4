-- As in the documentation of Redis (SET), and in most libraries: KEYS the lock; ARGV owner
if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end
