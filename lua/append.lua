-- Purpose:  add chunks to the events of a streaming flight, each once and without a gap.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   events    stream      what the owner tells its followers
-- KEYS[3]   interest  hash        follower worker -> lease end (ms)
-- ARGV[1]   token              of the owning flight object
-- ARGV[2]   fence              of the ownership
-- ARGV[3]   live_ttl_ms        TTL of everything that belongs to a flight in the air
-- ARGV[4]   first              sequence number of the first chunk
-- ARGV[5+]  chunk              bytes, in order
-- Returns   {OK | GAP, next sequence number, followers} | {STALE | LOST, 0, 0}
-- Keeps     invariants 2, 5, 6

local m = redis.call('HMGET', KEYS[1], 'state', 'owner', 'fence', 'seq')
if not m[1] then return {'LOST', 0, 0} end
local flying = m[1] == 'PENDING' or m[1] == 'RUNNING'
if not flying or m[2] ~= ARGV[1] or m[3] ~= ARGV[2] then return {'STALE', 0, 0} end

-- one whose lease has just ended may be among them: they only say how soon to append again
local followers = #redis.call('HVALS', KEYS[3])
local first, expected = tonumber(ARGV[4]), tonumber(m[4])
-- it always holds the owner's first event: an empty stream was deleted or trimmed under us
if expected > 0 and redis.call('XLEN', KEYS[2]) == 0 then
  expected = 0
  redis.call('HSET', KEYS[1], 'seq', 0)
end
if first > expected then return {'GAP', expected, followers} end
for i = 5 + expected - first, #ARGV do
  redis.call('XADD', KEYS[2], '*', 'kind', 'chunk', 'fence', ARGV[2], 'seq', expected, 'data', ARGV[i])
  expected = expected + 1
end
redis.call('HSET', KEYS[1], 'seq', expected)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {'OK', expected, followers}
