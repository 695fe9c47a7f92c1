#!lua flags=allow-oom
-- Purpose:  set FAILED and tell the followers the whole failure.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   events    stream      what the owner tells its followers
-- KEYS[3]   interest  hash        follower worker -> lease end (ms)
-- KEYS[4]   live      sorted set  flight id -> heartbeat (ms)
-- ARGV[1]   id                 flight id
-- ARGV[2]   token              of the owning flight object
-- ARGV[3]   fence              of the ownership
-- ARGV[4]   error_type         TIMEOUT | OVERLOAD | PROVIDER | VALIDATION | UNEXPECTED
-- ARGV[5]   code               what went wrong
-- ARGV[6]   retryable          1: a later caller may take over
-- ARGV[7]   status             HTTP status for clients
-- ARGV[8]   wait_ms            no takeover before this time from now
-- ARGV[9]   failure_ttl_ms     how long the failure is remembered
-- ARGV[10]  events_ttl_ms      how long the events stay for late readers
-- ARGV[11]  fallback           a marked stand-in for those who waited, or empty
-- Returns   {OK | STALE | LOST | CONFLICT}
-- Keeps     invariants 2, 3, 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local m = redis.call('HMGET', KEYS[1], 'state', 'owner', 'fence', 'code')
if not m[1] then return {'LOST'} end
if m[2] ~= ARGV[2] or m[3] ~= ARGV[3] then return {'STALE'} end
if m[1] == 'FAILED' and m[4] == ARGV[5] then return {'OK'} end
if m[1] == 'SUCCEEDED' or m[1] == 'FAILED' then return {'CONFLICT'} end

redis.call('HSET', KEYS[1], 'state', 'FAILED', 'error_type', ARGV[4], 'code', ARGV[5],
  'retryable', ARGV[6], 'status', ARGV[7], 'not_before', string.format('%.0f', now_ms() + ARGV[8]))
redis.call('PEXPIRE', KEYS[1], math.max(ARGV[8], ARGV[9]))
redis.call('XADD', KEYS[2], '*', 'kind', 'failed', 'fence', ARGV[3], 'error_type', ARGV[4],
  'code', ARGV[5], 'retryable', ARGV[6], 'status', ARGV[7], 'wait_ms', ARGV[8], 'fallback', ARGV[11])
redis.call('PEXPIRE', KEYS[2], ARGV[10])
redis.call('DEL', KEYS[3])
redis.call('ZREM', KEYS[4], ARGV[1])
return {'OK'}
