-- Purpose:  show many flights of one shard at once, with their ages by Redis's clock.
-- KEYS[1+]  meta      hash        the flight's state               | these two for
-- KEYS[2+]  interest  hash        follower worker -> lease end     | each flight
-- Returns   {{state, stage, tenant, worker, fence, ownerships, age in ms, silence in ms, live
--           followers}, …}; an empty list for a flight that is gone
-- Keeps     changes nothing

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local ms = now_ms()

local function followers(interest)
  local alive = 0
  for _, lease in ipairs(redis.call('HVALS', interest)) do
    if tonumber(lease) > ms then alive = alive + 1 end
  end
  return alive
end

local function show(meta, interest)
  local m = redis.call('HMGET', meta, 'state', 'stage', 'tenant', 'worker', 'fence', 'ownerships',
    'created', 'heartbeat')
  if not m[1] then return {} end
  return {m[1], m[2], m[3], m[4], m[5], m[6], ms - m[7], ms - m[8], followers(interest)}
end

local rows = {}
for i = 1, #KEYS, 2 do rows[#rows + 1] = show(KEYS[i], KEYS[i + 1]) end
return rows
