-- Purpose:  list a shard's flights in the air, those first whose owners are silent for longest.
-- KEYS[1]   live      sorted set  flight id -> heartbeat (ms)
-- ARGV[1]   live_ttl_ms        silence after which a flight is no longer there
-- ARGV[2]   most               ids that are wanted at most
-- Returns   {how many there are, {id, …}}
-- Keeps     changes nothing

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local since = string.format('%.0f', now_ms() - ARGV[1])
local count = redis.call('ZCOUNT', KEYS[1], since, '+inf')
return {count, redis.call('ZRANGE', KEYS[1], since, '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[2])}
