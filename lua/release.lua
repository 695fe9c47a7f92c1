#!lua flags=allow-oom
-- Purpose:  give the flight back unfinished: no owner, takeable at once, not counted as an attempt.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   events    stream      what the owner tells its followers
-- KEYS[3]   live      sorted set  flight id -> heartbeat (ms)
-- ARGV[1]   id                 flight id
-- ARGV[2]   token              of the owning flight object
-- ARGV[3]   fence              of the ownership
-- ARGV[4]   live_ttl_ms        TTL of everything that belongs to a flight in the air
-- Returns   {OK | STALE | LOST}
-- Keeps     invariants 2, 5

local m = redis.call('HMGET', KEYS[1], 'state', 'owner', 'fence')
if not m[1] then return {'LOST'} end
local flying = m[1] == 'PENDING' or m[1] == 'RUNNING'
if not flying or m[2] ~= ARGV[2] or m[3] ~= ARGV[3] then return {'STALE'} end

redis.call('HSET', KEYS[1], 'state', 'PENDING', 'owner', '')
redis.call('HINCRBY', KEYS[1], 'ownerships', -1)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('XADD', KEYS[2], '*', 'kind', 'released', 'fence', ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('ZREM', KEYS[3], ARGV[1])
return {'OK'}
