-- Purpose:  delete a flight that nobody waits for any more; refused while a follower holds a lease.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   events    stream      what the owner tells its followers
-- KEYS[3]   interest  hash        follower worker -> lease end (ms)
-- KEYS[4]   live      sorted set  flight id -> heartbeat (ms)
-- ARGV[1]   id                 flight id
-- ARGV[2]   token              of the owning flight object
-- ARGV[3]   fence              of the ownership
-- Returns   {OK | JOINED | STALE | LOST}
-- Keeps     invariants 2, 3

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local m = redis.call('HMGET', KEYS[1], 'state', 'owner', 'fence')
if not m[1] then return {'LOST'} end
local flying = m[1] == 'PENDING' or m[1] == 'RUNNING'
if not flying or m[2] ~= ARGV[2] or m[3] ~= ARGV[3] then return {'STALE'} end

local ms = now_ms()
for _, lease in ipairs(redis.call('HVALS', KEYS[3])) do
  if tonumber(lease) > ms then return {'JOINED'} end
end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('ZREM', KEYS[4], ARGV[1])
return {'OK'}
