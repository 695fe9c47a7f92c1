-- Purpose:  PENDING -> RUNNING: the model is about to be called.
-- KEYS[1]   meta      hash        the flight's state
-- ARGV[1]   token              of the owning flight object
-- ARGV[2]   fence              of the ownership
-- ARGV[3]   live_ttl_ms        TTL of everything that belongs to a flight in the air
-- Returns   {OK | STALE | LOST}
-- Keeps     invariant 6

local function now_ms()
  local t = redis.call('TIME')
  return string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
end

local m = redis.call('HMGET', KEYS[1], 'state', 'owner', 'fence')
if not m[1] then return {'LOST'} end
local flying = m[1] == 'PENDING' or m[1] == 'RUNNING'
if not flying or m[2] ~= ARGV[1] or m[3] ~= ARGV[2] then return {'STALE'} end
redis.call('HSET', KEYS[1], 'state', 'RUNNING', 'heartbeat', now_ms())
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'OK'}
