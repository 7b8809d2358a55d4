-- A change of data under a condition, which is no lock: KEYS the data; ARGV before, after
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('SET', KEYS[1], ARGV[2])
    return 1
end
return 0
