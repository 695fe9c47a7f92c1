-- Purpose:  show a flight, with its ages by Redis's clock.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   interest  hash        follower worker -> lease end (ms)
-- Returns   {now_ms, live followers, field, value, …}
-- Keeps     changes nothing

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local ms, followers = now_ms(), 0
for _, lease in ipairs(redis.call('HVALS', KEYS[2])) do
  if tonumber(lease) > ms then followers = followers + 1 end
end
local answer = {string.format('%.0f', ms), followers}
for _, item in ipairs(redis.call('HGETALL', KEYS[1])) do answer[#answer + 1] = item end
return answer
