-- Purpose:  tell all workers of flights that they must not remember any more.
-- KEYS[1]   forgotten  sorted set  flight id -> since (ms)
-- ARGV[1]   ttl_ms             for how long they are told
-- ARGV[2+]  id                 flight id
-- Returns   {OK, now_ms}
-- Keeps     invariant 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local ms = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', ms - ARGV[1]))
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], string.format('%.0f', ms), ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {'OK', string.format('%.0f', ms)}
