#!lua flags=allow-oom
-- Purpose:  end a lease that is still the asker's.
-- KEYS[1]   lease     string      the holder's token
-- ARGV[1]   token              of the asker
-- Returns   {OK | STALE | LOST}
-- Keeps     invariant 5

local holder = redis.call('GET', KEYS[1])
if not holder then return {'LOST'} end
if holder ~= ARGV[1] then return {'STALE'} end
redis.call('DEL', KEYS[1])
return {'OK'}
