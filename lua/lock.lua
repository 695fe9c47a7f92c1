-- Purpose:  take the lock of a session's heavy work for a flight, or hear who holds it.
-- KEYS[1]   lock      hash        who holds the lock
-- KEYS[2]   events    stream      tells those who wait that it is free
-- KEYS[3]   fence     integer     the shard's last fence, kept for ever
-- ARGV[1]   holder             flight id
-- ARGV[2]   token              of the asking flight object
-- ARGV[3]   flight_fence       of the flight's ownership; 0 without Redis
-- ARGV[4]   lease_ms           how long it is held without a renewal
-- ARGV[5]   min_fence          the highest fence that the asker has seen
-- Returns   {OK, fence} | {BUSY, last_event, ms_to_lease_end}
-- Keeps     invariants 1, 5

local function now_us()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

local m = redis.call('HMGET', KEYS[1], 'holder', 'token', 'fence', 'flight_fence')
if m[1] and m[2] == ARGV[2] then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  return {'OK', m[3]}
end

-- a flight that changed hands keeps its lock: the newer ownership takes it from the older
local taken_over = m[1] == ARGV[1] and tonumber(ARGV[3]) > tonumber(m[4])
if m[1] and not taken_over then
  local last = '0-0'
  if redis.call('EXISTS', KEYS[2]) == 1 then
    local info = redis.call('XINFO', 'STREAM', KEYS[2])
    for i = 1, #info, 2 do
      if info[i] == 'last-generated-id' then last = info[i + 1] end
    end
  end
  return {'BUSY', last, redis.call('PTTL', KEYS[1])}
end

local seen = tonumber(redis.call('GET', KEYS[3]) or 0)
local fence = string.format('%.0f', math.max(seen + 1, now_us(), tonumber(ARGV[5]) + 1))
redis.call('SET', KEYS[3], fence)
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'token', ARGV[2], 'fence', fence,
  'flight_fence', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('XADD', KEYS[2], 'MAXLEN', 1, '*', 'kind', 'locked', 'fence', fence)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return {'OK', fence}
