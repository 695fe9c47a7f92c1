-- Purpose:  store the answer, set SUCCEEDED and tell the followers, all or nothing.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   result    string      the stored answer of result_fence
-- KEYS[3]   events    stream      what the owner tells its followers
-- KEYS[4]   interest  hash        follower worker -> lease end (ms)
-- KEYS[5]   live      sorted set  flight id -> heartbeat (ms)
-- ARGV[1]   id                 flight id
-- ARGV[2]   token              of the owning flight object
-- ARGV[3]   fence              of the ownership
-- ARGV[4]   envelope           the serialized answer
-- ARGV[5]   codec              how it is packed
-- ARGV[6]   size               bytes before packing
-- ARGV[7]   checksum           of the envelope's content
-- ARGV[8]   result_ttl_ms      how long it replays
-- ARGV[9]   events_ttl_ms      how long the events stay for late readers
-- Returns   {OK | STALE | LOST | CONFLICT}
-- Keeps     invariants 2, 3, 5

local m = redis.call('HMGET', KEYS[1], 'state', 'owner', 'fence', 'checksum', 'seq')
if not m[1] then return {'LOST'} end
if m[2] ~= ARGV[2] or m[3] ~= ARGV[3] then return {'STALE'} end
if m[1] == 'SUCCEEDED' and m[4] == ARGV[7] then return {'OK'} end
if m[1] == 'SUCCEEDED' or m[1] == 'FAILED' then return {'CONFLICT'} end

redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[8])
redis.call('HSET', KEYS[1], 'state', 'SUCCEEDED', 'result_fence', ARGV[3], 'codec', ARGV[5],
  'size', ARGV[6], 'checksum', ARGV[7])
redis.call('PEXPIRE', KEYS[1], ARGV[8])
redis.call('XADD', KEYS[3], '*', 'kind', 'succeeded', 'fence', ARGV[3], 'chunks', m[5] or 0)
redis.call('PEXPIRE', KEYS[3], ARGV[9])
redis.call('DEL', KEYS[4])
redis.call('ZREM', KEYS[5], ARGV[1])
return {'OK'}
