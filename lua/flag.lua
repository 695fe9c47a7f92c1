-- Purpose:  say that a module needs a person, and pause it if wanted, while its failures last.
-- KEYS[1]   switches  hash        decision and module -> since (ms) and record, kept for ever
-- KEYS[2]   streaks   hash        module and code -> failures without a success between
-- ARGV[1]   streak             module and code
-- ARGV[2]   limit              so many failures in a row need a person
-- ARGV[3]   flag_field         where the flag is noted
-- ARGV[4]   flag               the flag's record, as JSON
-- ARGV[5]   pause_field        where the pause is noted; empty: none is wanted
-- ARGV[6]   pause              the pause's record, as JSON
-- Returns   {OK | BUSY | STALE}: raised, stood already, or the failures have ended
-- Keeps     invariant 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local failures = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or 0)
if failures < tonumber(ARGV[2]) then return {'STALE'} end
if redis.call('HGET', KEYS[1], ARGV[3]) then return {'BUSY'} end
local ms = now_ms()
redis.call('HSET', KEYS[1], ARGV[3], string.format('%.0f %s', ms, ARGV[4]))
if ARGV[5] ~= '' and not redis.call('HGET', KEYS[1], ARGV[5]) then
  redis.call('HSET', KEYS[1], ARGV[5], string.format('%.0f %s', ms, ARGV[6]))
end
return {'OK'}
