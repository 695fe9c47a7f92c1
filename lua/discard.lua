-- Purpose:  throw away a stored answer that cannot be read, if it is still that one.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   result    string      the stored answer of result_fence
-- ARGV[1]   fence              result_fence of the unreadable answer
-- ARGV[2]   sha1               of the bytes that could not be read, hex
-- Returns   {OK | STALE}
-- Keeps     invariant 8

local stored = redis.call('GET', KEYS[2])
if not stored or redis.call('HGET', KEYS[1], 'result_fence') ~= ARGV[1] then return {'STALE'} end
if redis.sha1hex(stored) ~= ARGV[2] then return {'STALE'} end
redis.call('DEL', KEYS[2])
return {'OK'}
