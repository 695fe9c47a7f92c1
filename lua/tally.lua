-- Purpose:  add up what a worker saw since it last did, and say what all of them saw.
-- KEYS[1]   streaks   hash        module and code -> failures without a success between
-- KEYS[2+]  count     hash        part of a window -> how often    | for each count
-- ARGV[1]   streaks_ttl_ms     how long failures in a row are remembered
-- ARGV[2]   outcomes           JSON: [[module, whether it succeeded, {code: failures since}], …]
-- ARGV[3+]  window_ms          the window of this count            | these two for
-- ARGV[4+]  times              how often it happened               | each count
-- Returns   {{module and code, failures in a row, …}, {count over its window, …}}
-- Keeps     invariant 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local ms, parts = now_ms(), 10

local function forget(module)
  local prefix = string.format('%s ', module)
  local streaks = redis.call('HGETALL', KEYS[1])
  for i = 1, #streaks, 2 do
    if string.sub(streaks[i], 1, #prefix) == prefix then
      redis.call('HDEL', KEYS[1], streaks[i])
    end
  end
end

-- counts the whole parts of the window, and the one that runs
local function total(count, window_ms, times)
  local part = math.floor(ms * parts / window_ms)
  redis.call('HINCRBY', count, string.format('%.0f', part), times)
  redis.call('PEXPIRE', count, window_ms)
  local sum, held = 0, redis.call('HGETALL', count)
  for i = 1, #held, 2 do
    local age = part - tonumber(held[i])
    if age >= 0 and age < parts then
      sum = sum + tonumber(held[i + 1])
    else
      redis.call('HDEL', count, held[i])
    end
  end
  return sum
end

local rows, sums = {}, {}
for _, outcome in ipairs(cjson.decode(ARGV[2])) do
  local module, succeeded, failures = outcome[1], outcome[2], outcome[3]
  if succeeded then forget(module) end
  for code, times in pairs(failures) do
    local streak = string.format('%s %s', module, code)
    rows[#rows + 1] = streak
    rows[#rows + 1] = redis.call('HINCRBY', KEYS[1], streak, times)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
  end
end
for i = 2, #KEYS do
  sums[#sums + 1] = total(KEYS[i], ARGV[2 * i - 1], ARGV[2 * i])
end
return {rows, sums}
