#!lua flags=allow-oom
-- Purpose:  keep a worker's session locks of one shard, and hear which are no longer its own.
-- KEYS[1+]  lock      hash        who holds the lock               | these two
-- KEYS[2+]  events    stream      tells those who wait             | for each lock
-- ARGV[1]   lease_ms           how long it is held without a renewal
-- ARGV[2+]  token              of the holding flight object        | these two
-- ARGV[3+]  fence              of the lock                         | for each lock
-- Returns   {OK | STALE | LOST, …}: one for each lock
-- Keeps     invariant 5

local function renew(lock, events, token, fence)
  local m = redis.call('HMGET', lock, 'token', 'fence')
  if not m[1] then return 'LOST' end
  if m[1] ~= token or m[2] ~= fence then return 'STALE' end
  redis.call('PEXPIRE', lock, ARGV[1])
  redis.call('PEXPIRE', events, ARGV[1])
  return 'OK'
end

local answer = {}
for i = 1, #KEYS, 2 do
  answer[#answer + 1] = renew(KEYS[i], KEYS[i + 1], ARGV[i + 1], ARGV[i + 2])
end
return answer
