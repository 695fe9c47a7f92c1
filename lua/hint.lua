-- Purpose:  tell the other workers which breakers opened here, and which closed.
-- KEYS[1]   hints     hash        target -> end of its breaker's open time (ms)
-- ARGV[1+]  target             provider and model                 | these two for
-- ARGV[2+]  open_ms            for how long it is open; 0: closed | each target
-- Returns   {OK}
-- Keeps     invariant 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local ms, longest = now_ms(), 0
for i = 1, #ARGV, 2 do
  local open_ms = tonumber(ARGV[i + 1])
  if open_ms > 0 then
    redis.call('HSET', KEYS[1], ARGV[i], string.format('%.0f', ms + open_ms))
  else
    redis.call('HDEL', KEYS[1], ARGV[i])
  end
end

local hints = redis.call('HGETALL', KEYS[1])
for i = 1, #hints, 2 do
  local left = tonumber(hints[i + 1]) - ms
  if left <= 0 then redis.call('HDEL', KEYS[1], hints[i]) end
  longest = math.max(longest, left)
end
if longest > 0 then redis.call('PEXPIRE', KEYS[1], string.format('%.0f', longest)) end
return {'OK'}
