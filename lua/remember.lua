-- Purpose:  keep the last good answers of some places in sessions.
-- KEYS[1+]  answer    string      time (ms), then the answer as JSON   | for each answer
-- ARGV[1]   ttl_ms             how long they are kept
-- ARGV[2+]  value              the answer as JSON                      | one for each answer
-- Returns   {OK}
-- Keeps     invariant 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function keep(answer, at, ttl_ms, value)
  redis.call('SET', answer, string.format('%s %s', at, value), 'PX', ttl_ms)
end

local at = string.format('%.0f', now_ms())
for i = 1, #KEYS do
  keep(KEYS[i], at, ARGV[1], ARGV[i + 1])
end
return {'OK'}
