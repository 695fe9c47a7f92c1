-- Purpose:  a worker follows the flight no longer: its owner may see before the lease ends.
-- KEYS[1]   interest  hash        follower worker -> lease end (ms)
-- ARGV[1]   worker             that no longer follows
-- Returns   {OK}
-- Keeps     invariant 5

redis.call('HDEL', KEYS[1], ARGV[1])
return {'OK'}
