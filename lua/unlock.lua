#!lua flags=allow-oom
-- Purpose:  give a session's lock back and tell those who wait.
-- KEYS[1]   lock      hash        who holds the lock
-- KEYS[2]   events    stream      tells those who wait that it is free
-- ARGV[1]   token              of the holding flight object
-- ARGV[2]   fence              of the lock
-- ARGV[3]   events_ttl_ms      how long the news stay for late readers
-- Returns   {OK | STALE | LOST}
-- Keeps     invariant 5

local m = redis.call('HMGET', KEYS[1], 'token', 'fence')
if not m[1] then return {'LOST'} end
if m[1] ~= ARGV[1] or m[2] ~= ARGV[2] then return {'STALE'} end
redis.call('DEL', KEYS[1])
redis.call('XADD', KEYS[2], 'MAXLEN', 1, '*', 'kind', 'unlocked', 'fence', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {'OK'}
