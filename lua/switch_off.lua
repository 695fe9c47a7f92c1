-- Purpose:  take decisions about a module back, and forget its failures in a row.
-- KEYS[1]   switches  hash        decision and module -> since (ms) and record, kept for ever
-- KEYS[2]   streaks   hash        module and code -> failures without a success between
-- ARGV[1]   module             whose failures are forgotten
-- ARGV[2+]  field              decision and module                | for each decision
-- Returns   how many decisions stood
-- Keeps     invariant 5

local stood = 0
for i = 2, #ARGV do stood = stood + redis.call('HDEL', KEYS[1], ARGV[i]) end

local prefix = string.format('%s ', ARGV[1])
local streaks = redis.call('HGETALL', KEYS[2])
for i = 1, #streaks, 2 do
  if string.sub(streaks[i], 1, #prefix) == prefix then redis.call('HDEL', KEYS[2], streaks[i]) end
end
return stood
