"""What has to happen in one piece, as Lua for the server. Times are the server's.

A process lives as long as its key ``alive:TOKEN`` is there: it is renewed by the process and runs out by itself.
Claims, call slots and look-ahead hold only while their holder lives.
"""

from __future__ import annotations

ALL = {
    "open": "return redis.call('PING')",
    # KEYS: reply, claim, own alive. ARGV: digest, token, lease (ms), claim's end (ms), prefix of alive keys.
    # The reply's fields; or 1: claimed; or 0: somebody else is on it.
    "claim": """
local kept = redis.call('HMGET', KEYS[1], 'checksum', 'payload', 'prompt_tokens', 'completion_tokens',
  'seconds', 'paid_by')
if kept[1] and kept[2] and redis.sha1hex(ARGV[1] .. '\\n' .. kept[2]) == kept[1] then return kept end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[2] and redis.call('EXISTS', ARGV[5] .. holder) == 1 then return 0 end
redis.call('SET', KEYS[3], '1', 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[4])
return 1
""",
    # KEYS: reply, claim, changes. ARGV: token, lasts (ms), digest, payload, then field, value, ...
    "put": """
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'payload', ARGV[4], 'checksum', redis.sha1hex(ARGV[3] .. '\\n' .. ARGV[4]),
  unpack(ARGV, 5))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
redis.call('INCR', KEYS[3])
return 1
""",
    # KEYS: reply. ARGV: payload.
    "discard": """
if redis.call('HGET', KEYS[1], 'payload') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
""",
    # KEYS: claim, changes. ARGV: token.
    "release": """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return redis.call('INCR', KEYS[2])
""",
    # KEYS: own alive. ARGV: lease (ms).
    "renew": "return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])",
    # KEYS: replies. ARGV: now, a day (s), lasts (ms).
    "used": """
for _, key in ipairs(KEYS) do
  local at = redis.call('HMGET', key, 'used', 'run')
  if at[1] and not at[2] and tonumber(ARGV[1]) - tonumber(at[1]) > tonumber(ARGV[2]) then
    redis.call('HSET', key, 'used', ARGV[1])
    redis.call('PEXPIRE', key, ARGV[3])
  end
end
return 1
""",
    # KEYS: changes, then reply, claim, reply, claim, ... ARGV: changes seen before ('' for all), prefix of alive keys.
    # Changes, and for each reply 1 (no more waiting), or 0 while somebody who lives is on it.
    "look": """
local changes = redis.call('GET', KEYS[1]) or ''
if ARGV[1] ~= '' and changes == ARGV[1] then return {changes} end
local found = {changes}
for i = 2, #KEYS, 2 do
  local holder = redis.call('EXISTS', KEYS[i]) == 0 and redis.call('GET', KEYS[i + 1])
  found[#found + 1] = holder and redis.call('EXISTS', ARGV[2] .. holder) == 1 and 0 or 1
end
return found
""",
    # KEYS: slots, waiting, row of the pace, own alive. ARGV: token, held, wanted, waiting, limit, prefix of alive
    # keys, lease (ms), kept (ms). {granted, others wait, row or '', now (s)}
    "take_slots": """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local held = 0
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i] ~= ARGV[1] then
    if redis.call('EXISTS', ARGV[6] .. all[i]) == 1 then
      held = held + tonumber(all[i + 1])
    else
      redis.call('HDEL', KEYS[1], all[i])
    end
  end
end
local own, wanted, waiting = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local granted = math.max(0, math.min(wanted, tonumber(ARGV[5]) - held - own))
redis.call('SET', KEYS[4], '1', 'PX', ARGV[7])
if own + granted > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], own + granted)
else
  redis.call('HDEL', KEYS[1], ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[8])
if waiting > granted then
  redis.call('ZADD', KEYS[2], now + 500, ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[8])
else
  redis.call('ZREM', KEYS[2], ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local others = redis.call('ZCARD', KEYS[2])
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then others = others - 1 end
return {granted, others, redis.call('GET', KEYS[3]) or '', time[1] .. '.' .. string.format('%06d', time[2])}
""",
    # KEYS: slots. ARGV: token, given back.
    "give_slots": """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
local left = redis.call('HINCRBY', KEYS[1], ARGV[1], -tonumber(ARGV[2]))
if left <= 0 then redis.call('HDEL', KEYS[1], ARGV[1]) end
return left
""",
    # KEYS: own alive, changes, then slots. ARGV: token.
    "leave": """
for i = 3, #KEYS do redis.call('HDEL', KEYS[i], ARGV[1]) end
redis.call('DEL', KEYS[1])
return redis.call('INCR', KEYS[2])
""",
    # KEYS: tests, own alive. ARGV: token, lease (ms), kept (ms), prefix of alive keys, then numbers.
    "claim_tests": """
redis.call('SET', KEYS[2], '1', 'PX', ARGV[2])
local own = {}
for i = 5, #ARGV do
  local holder = redis.call('HGET', KEYS[1], ARGV[i])
  if not holder or (holder ~= ARGV[1] and redis.call('EXISTS', ARGV[4] .. holder) == 0) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[1])
    holder = ARGV[1]
  end
  if holder == ARGV[1] then own[#own + 1] = tonumber(ARGV[i]) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return own
""",
    # KEYS: paid. ARGV: digest, kept (ms).
    "take_mark": """
local new = redis.call('SADD', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return new
""",
    # KEYS: paid. ARGV: digest.
    "untake": "return redis.call('SREM', KEYS[1], ARGV[1])",
    # KEYS: row. ARGV: before, after, kept (ms). 1, or the row as it is ('' where there is none).
    "compare_and_set": """
local found = redis.call('GET', KEYS[1])
if (found or string.rep('\\0', 56)) ~= ARGV[1] then return found or '' end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
""",
    # KEYS: failure. ARGV: text, kept (ms).
    "leave_failure": "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])",
    # KEYS: failure. ARGV: 1 to take it.
    "failure": """
local found = redis.call('GET', KEYS[1])
if found and ARGV[1] == '1' then redis.call('DEL', KEYS[1]) end
return found
""",
}
