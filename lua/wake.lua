-- Purpose:  wake the reader of a worker, so that it reads its new subscriptions too.
-- KEYS[1]   wake      stream      of length 1
-- ARGV[1]   ttl_ms             how long it stays
-- Returns   id of the entry
-- Keeps     invariant 5

local entry = redis.call('XADD', KEYS[1], 'MAXLEN', 1, '*', 'wake', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return entry
