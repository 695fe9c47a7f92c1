-- Purpose:  take a lease, or hear how long another holds it.
-- KEYS[1]   lease     string      the holder's token
-- ARGV[1]   token              of the asker
-- ARGV[2]   lease_ms           how long it is held without a renewal
-- Returns   {OK} | {BUSY, ms_to_lease_end}
-- Keeps     invariant 5

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return {'BUSY', redis.call('PTTL', KEYS[1])} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'OK'}
