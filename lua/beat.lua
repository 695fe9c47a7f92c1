#!lua flags=allow-oom
-- Purpose:  keep a worker's flights of one shard alive, and hear which are no longer its own.
-- KEYS[1]   live      sorted set  flight id -> heartbeat (ms)
-- KEYS[2+]  meta      hash        the flight's state               | these three
-- KEYS[3+]  events    stream      what the owner tells             | for each
-- KEYS[4+]  interest  hash        follower worker -> lease end     | flight
-- ARGV[1]   live_ttl_ms        TTL of everything that belongs to a flight in the air
-- ARGV[2+]  id                 flight id                           | these three
-- ARGV[3+]  token              of the owning flight object         | for each
-- ARGV[4+]  fence              of the ownership                    | flight
-- Returns   {OK | STALE | LOST, followers, …}: two for each flight
-- Keeps     invariants 5, 6

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local ms, ttl = now_ms(), ARGV[1]
local stamp = string.format('%.0f', ms)

local function followers(interest)
  local leases, alive = redis.call('HVALS', interest), 0
  for _, lease in ipairs(leases) do
    if tonumber(lease) > ms then alive = alive + 1 end
  end
  return alive
end

local function beat(meta, events, interest, id, token, fence)
  local m = redis.call('HMGET', meta, 'state', 'owner', 'fence')
  if not m[1] then return 'LOST', 0 end
  local flying = m[1] == 'PENDING' or m[1] == 'RUNNING'
  if not flying or m[2] ~= token or m[3] ~= fence then return 'STALE', 0 end
  redis.call('HSET', meta, 'heartbeat', stamp)
  redis.call('PEXPIRE', meta, ttl)
  redis.call('PEXPIRE', events, ttl)
  redis.call('PEXPIRE', interest, ttl)
  redis.call('ZADD', KEYS[1], stamp, id)
  return 'OK', followers(interest)
end

local answer = {}
for i = 2, #KEYS, 3 do
  local status, alive = beat(KEYS[i], KEYS[i + 1], KEYS[i + 2], ARGV[i], ARGV[i + 1], ARGV[i + 2])
  answer[#answer + 1] = status
  answer[#answer + 1] = alive
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', ms - ttl))
redis.call('PEXPIRE', KEYS[1], ttl)
return answer
