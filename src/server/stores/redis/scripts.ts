/**
 * All that is written to Redis. A script touches one key, so that any node of a cluster can run it, and answers with
 * `{ now, outcome, value }`: the time is Redis's own, in ms.
 *
 * A value is four lines: the head (flat JSON, for the scripts), the facts, the answer, its body in base64. The head names
 * all that a change of the row changes, so a row is the one that was read as long as its head is. Texts that a caller
 * made are not in the head, because cjson refuses what JSON.stringify allows (half of a surrogate pair).
 */

const PRELUDE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function head_of(value) return string.match(value, '^[^\\n]*') end
local function facts_of(value) return string.match(value, '^[^\\n]*\\n([^\\n]*)') end
local function held(value, owner, fence)
  if not value then return nil end
  local head = cjson.decode(head_of(value))
  if head.state == 'in_progress' and head.owner == owner and head.fence == tonumber(fence) then return head end
  return nil
end
`;

/** Gives the value; with `'bodiless'`, without its last line. */
export const READ: string = `${PRELUDE}
local value = redis.call('GET', KEYS[1]) or ''
if ARGV[1] == 'bodiless' then value = string.match(value, '^[^\\n]*\\n[^\\n]*\\n[^\\n]*\\n') or value end
return { now, 'read', value }`;

/**
 * Writes the first value of a key, unless there is one: then it gives that. The times in the head are offsets from now.
 * ARGV: deadline, head, the other lines, ttl.
 */
export const CREATE: string = `${PRELUDE}
if now > tonumber(ARGV[1]) then return { now, 'late', '' } end
local head = cjson.decode(ARGV[2])
for _, name in ipairs({ 'leaseUntil', 'firstSeenAt', 'keyExpiresAt' }) do head[name] = now + head[name] end
if redis.call('SET', KEYS[1], cjson.encode(head) .. '\\n' .. ARGV[3], 'NX', 'PX', ARGV[4]) then return { now, 'written', '' } end
return { now, 'read', redis.call('GET', KEYS[1]) }`;

/**
 * Replaces the value whose head is still the one that was read ('' for none), else it gives what is there now.
 * ARGV: deadline, the head that was read, the new value ('' deletes), ttl ('' for none).
 */
export const SWAP: string = `${PRELUDE}
if now > tonumber(ARGV[1]) then return { now, 'late', '' } end
local value = redis.call('GET', KEYS[1]) or ''
if head_of(value) ~= ARGV[2] then return { now, 'read', value } end
if ARGV[3] == '' then redis.call('DEL', KEYS[1])
elseif ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[3])
else redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4]) end
return { now, 'written', '' }`;

/** Extends the lease of a run. ARGV: owner, fence, lease, '1' when an effect starts, ms that doubt is kept. */
export const RENEW: string = `${PRELUDE}
local value = redis.call('GET', KEYS[1])
local head = held(value, ARGV[1], ARGV[2])
if not head then return { now, 'lost', '' } end
head.leaseUntil = now + ARGV[3]
head.effectStarted = head.effectStarted or ARGV[4] == '1'
local ttl = math.max(head.leaseUntil, head.keyExpiresAt) - now + ARGV[5]
redis.call('SET', KEYS[1], cjson.encode(head) .. string.sub(value, #head_of(value) + 1), 'PX', string.format('%.0f', ttl))
return { now, 'written', '' }`;

/** Ends a run with an answer, else it gives what is there. ARGV: owner, fence, retention, key retention, the answer's lines, ttl. */
export const COMPLETE: string = `${PRELUDE}
local value = redis.call('GET', KEYS[1])
local head = held(value, ARGV[1], ARGV[2])
if not head then return { now, 'read', value or '' } end
head.state = 'completed'
head.settledAt = now
head.resultExpiresAt = now + ARGV[3]
head.keyExpiresAt = now + ARGV[4]
redis.call('SET', KEYS[1], cjson.encode(head) .. '\\n' .. facts_of(value) .. '\\n' .. ARGV[5], 'PX', ARGV[6])
return { now, 'written', '' }`;
