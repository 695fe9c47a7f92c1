-- Purpose:  add state changes to the stream that other services read.
-- KEYS[1]   events    stream      state changes, oldest first
-- ARGV[1]   ttl_ms             how long the stream stays after its last entry
-- ARGV[2]   most               about so many entries are kept
-- ARGV[3+]  kind               what is to change                  | these two for
-- ARGV[4+]  event              the whole change, as JSON          | each change
-- Returns   {OK}
-- Keeps     invariant 5

for i = 3, #ARGV, 2 do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'kind', ARGV[i], 'event', ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {'OK'}
