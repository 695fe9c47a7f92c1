-- Purpose:  forget an ended flight, its answer or its failure; one in the air loses its old answer.
-- KEYS[1]   meta      hash        the flight's state
-- KEYS[2]   result    string      the stored answer of result_fence
-- KEYS[3]   events    stream      what the owner tells its followers
-- Returns   {OK | BUSY | LOST}
-- Keeps     invariant 5

redis.call('DEL', KEYS[2])
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return {'LOST'} end
if state == 'PENDING' or state == 'RUNNING' then return {'BUSY'} end
redis.call('DEL', KEYS[1], KEYS[3])
return {'OK'}
