-- Purpose:  find the last good answer of a place in a session, and its age.
-- KEYS[1]   answer    string      time (ms), then the answer as JSON
-- Returns   {OK, age (ms), answer} | {LOST}
-- Keeps     changes nothing

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local kept = redis.call('GET', KEYS[1])
if not kept then return {'LOST'} end
local space = string.find(kept, ' ', 1, true)
local age = now_ms() - tonumber(string.sub(kept, 1, space - 1))
return {'OK', string.format('%.0f', age), string.sub(kept, space + 1)}
