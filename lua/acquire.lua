-- Purpose:  own the flight, follow its owner, or replay its end: one decision, one round trip.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   result    string      the stored answer of result_fence
-- KEYS[3]   events    stream      what the owner tells its followers
-- KEYS[4]   interest  hash        follower worker -> lease end (ms)
-- KEYS[5]   live      sorted set  flight id -> heartbeat (ms)
-- KEYS[6]   fence     integer     the shard's last fence, kept for ever
-- ARGV[1]   id                 flight id
-- ARGV[2]   token              of the asking flight object
-- ARGV[3]   worker             of the asker
-- ARGV[4]   tenant             who asks
-- ARGV[5]   stage              kind of request
-- ARGV[6]   digest             of the request, for explicit keys
-- ARGV[7]   takeover_detect_ms silence after which an owner counts as dead
-- ARGV[8]   deadline_ms        longest time from now that an ownership may last
-- ARGV[9]   live_ttl_ms        TTL of everything that belongs to a flight in the air
-- ARGV[10]  failure_ttl_ms     TTL of a failure
-- ARGV[11]  min_fence          the highest fence that the asker has seen
-- ARGV[12]  waited_fence       the fence that the asker waited for, or 0
-- ARGV[13]  replay             1: an earlier answer is welcome
-- ARGV[14]  may_own            1: the asker can run the call
-- ARGV[15]  max_ownerships     failed ownerships after which a failure stands
-- ARGV[16]  max_silent         takeovers of silent owners after which the flight fails
-- Returns   {OWNER_NEW | OWNER_TAKEOVER, fence, ownerships}
--           {FOLLOWER_WAIT, fence, events_from, last_event, ms_to_takeover}
--           {REPLAY_SUCCESS, fence, envelope}
--           {REPLAY_FAILURE, fence, error_type, code, retryable, status, wait_ms}
--           {KEY_CONFLICT} | {DECLINED}
-- Keeps     invariants 1, 4, 5

local function now_us()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
local function text(number) return string.format('%.0f', number) end

local us = now_us()
local ms = math.floor(us / 1000)
local id, token, digest = ARGV[1], ARGV[2], ARGV[6]
local detect, live_ttl, waited = tonumber(ARGV[7]), ARGV[9], tonumber(ARGV[12])
local wants_replay, may_own = ARGV[13] == '1', ARGV[14] == '1'

local m = redis.call('HMGET', KEYS[1], 'state', 'fence', 'owner', 'digest', 'ownerships', 'silent',
  'heartbeat', 'deadline', 'events_from', 'result_fence', 'error_type', 'code', 'retryable', 'status',
  'not_before', 'action')
local state, fence, owner = m[1], m[2], m[3]
local ownerships, silent = tonumber(m[5] or 0), tonumber(m[6] or 0)

local function announce(number)
  local event = redis.call('XADD', KEYS[3], '*', 'kind', 'owned', 'fence', number)
  redis.call('PEXPIRE', KEYS[3], live_ttl)
  return event
end

local function own(action, count, silences)
  if not may_own then return {'DECLINED'} end
  local last = tonumber(redis.call('GET', KEYS[6]) or 0)
  local number = text(math.max(last + 1, us, tonumber(ARGV[11]) + 1))
  redis.call('SET', KEYS[6], number)
  -- the ownership before this one may still be read, those before it not
  if m[9] then redis.call('XTRIM', KEYS[3], 'MINID', m[9]) end
  redis.call('HDEL', KEYS[4], ARGV[3])
  redis.call('HSET', KEYS[1], 'state', 'PENDING', 'fence', number, 'owner', token, 'worker', ARGV[3],
    'tenant', ARGV[4], 'stage', ARGV[5], 'digest', digest, 'ownerships', count, 'silent', silences,
    'created', text(ms), 'heartbeat', text(ms), 'deadline', text(ms + ARGV[8]), 'seq', 0,
    'action', action, 'events_from', announce(number))
  redis.call('HDEL', KEYS[1], 'error_type', 'code', 'retryable', 'status', 'not_before')
  redis.call('PEXPIRE', KEYS[1], live_ttl)
  redis.call('ZADD', KEYS[5], ms, id)
  redis.call('PEXPIRE', KEYS[5], live_ttl)
  return {action, number, count}
end

local function failure()
  local wait = tonumber(m[15] or 0) - ms
  if m[13] ~= '1' or ownerships >= tonumber(ARGV[15]) then wait = redis.call('PTTL', KEYS[1]) end
  return {'REPLAY_FAILURE', fence, m[11], m[12], m[13], m[14], text(math.max(wait, 0))}
end

local function give_up()
  m[11], m[12], m[13], m[14], m[15] = 'UNEXPECTED', 'FLIGHT_OWNERS_LOST', '0', '503', text(ms)
  redis.call('HSET', KEYS[1], 'state', 'FAILED', 'owner', '', 'error_type', m[11], 'code', m[12],
    'retryable', m[13], 'status', m[14], 'not_before', m[15])
  redis.call('PEXPIRE', KEYS[1], ARGV[10])
  redis.call('XADD', KEYS[3], '*', 'kind', 'failed', 'fence', fence, 'error_type', m[11], 'code', m[12],
    'retryable', m[13], 'status', m[14], 'wait_ms', ARGV[10])
  redis.call('PEXPIRE', KEYS[3], live_ttl)
  redis.call('ZREM', KEYS[5], id)
  return failure()
end

local function last_event()
  if redis.call('EXISTS', KEYS[3]) == 0 then
    -- what it held is gone: the owner appends from the start again
    m[9] = announce(fence)
    redis.call('HSET', KEYS[1], 'events_from', m[9], 'seq', 0)
    return m[9]
  end
  local info = redis.call('XINFO', 'STREAM', KEYS[3])
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then return info[i + 1] end
  end
end

local function follow(patience)
  -- a full server refuses this write: waiting works without it, only cancelling does not see us
  redis.pcall('HSET', KEYS[4], ARGV[3], text(ms + 2 * detect))
  redis.pcall('PEXPIRE', KEYS[4], live_ttl)
  local last = last_event()
  return {'FOLLOWER_WAIT', fence, m[9], last, text(patience)}
end

if not state then return own('OWNER_NEW', 1, 0) end
if (m[4] or '') ~= digest then return {'KEY_CONFLICT'} end
local flying = state == 'PENDING' or state == 'RUNNING'

if flying and owner == token then
  redis.call('HSET', KEYS[1], 'heartbeat', text(ms))
  redis.call('PEXPIRE', KEYS[1], live_ttl)
  return {m[16], fence, ownerships}
end

local answered = tonumber(m[10] or 0)
if (waited > 0 and answered >= waited) or (state == 'SUCCEEDED' and wants_replay) then
  local envelope = redis.call('GET', KEYS[2])
  if envelope then return {'REPLAY_SUCCESS', m[10], envelope} end
end

if state == 'SUCCEEDED' then return own('OWNER_TAKEOVER', 1, 0) end

if state == 'FAILED' then
  local unread = waited > 0 and tonumber(fence) >= waited
  local again = m[13] == '1' and tonumber(m[15] or 0) <= ms and ownerships < tonumber(ARGV[15])
  if unread or not again then return failure() end
  return own('OWNER_TAKEOVER', ownerships + 1, silent)
end

if owner == '' then return own('OWNER_TAKEOVER', ownerships + 1, silent) end
local age, left = ms - tonumber(m[7]), tonumber(m[8]) - ms
if math.abs(age) <= detect and left >= 0 then
  return follow(math.max(math.min(detect - age, left), 0) + 1)
end
if not may_own then return {'DECLINED'} end
if silent >= tonumber(ARGV[16]) then return give_up() end
return own('OWNER_TAKEOVER', ownerships + 1, silent + 1)
