-- Purpose:  everything that operators and workers have told all workers, as it stands now.
-- KEYS[1]   switches  hash        decision and module -> since (ms) and record, kept for ever
-- KEYS[2]   hints     hash        target -> end of its breaker's open time (ms)
-- KEYS[3]   streaks   hash        module and code -> failures without a success between
-- KEYS[4]   forgotten  sorted set  flight id -> since (ms)
-- Returns   {{field, since and record, …}, {target, ms_left, …}, {module and code, failures, …}, {id, since, …}}
-- Keeps     changes nothing

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local ms, open = now_ms(), {}
local hints = redis.call('HGETALL', KEYS[2])
for i = 1, #hints, 2 do
  local left = tonumber(hints[i + 1]) - ms
  if left > 0 then
    open[#open + 1] = hints[i]
    open[#open + 1] = left
  end
end
return {redis.call('HGETALL', KEYS[1]), open, redis.call('HGETALL', KEYS[3]),
  redis.call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES')}
