-- Purpose:  note a decision that stands until it is taken back, and since when.
-- KEYS[1]   switches  hash        decision and module -> since (ms) and record, kept for ever
-- ARGV[1]   field              decision and module
-- ARGV[2]   record             who and why, as JSON
-- ARGV[3]   keep               1: a decision that stands already stays as it is
-- Returns   {OK | BUSY, since and record that stand now}
-- Keeps     invariant 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local stands = redis.call('HGET', KEYS[1], ARGV[1])
if stands and ARGV[3] == '1' then return {'BUSY', stands} end
local record = string.format('%.0f %s', now_ms(), ARGV[2])
redis.call('HSET', KEYS[1], ARGV[1], record)
return {'OK', record}
