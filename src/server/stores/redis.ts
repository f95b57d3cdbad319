import { aFunction, aText, atLeast, checkKind, checkOptions, withMethods, type Kinds } from '../../checks.js';
import { aRedisConnection } from '../../database-clients.js';
import { systemClock, type Clock } from '../../clock.js';
import { claimRecord, settleRecord, type Claim, type DedupRecord } from '../record.js';
import { rowStore } from '../row-store.js';
import type { DedupStore } from '../store.js';
import { createCommands } from './redis/commands.js';
import type { RedisConnection } from './redis/connection.js';
import { checkNodes } from './redis/health.js';
import { namesUnder } from './redis/names.js';
import { createRows } from './redis/rows.js';
import { COMPLETE, CREATE, RENEW } from './redis/scripts.js';
import { createTidy } from './redis/tidy.js';
import { encode, encodeAnswer, wholeMs } from './redis/value.js';

export { fromIoredis, fromNodeRedis, fromNodeRedisCluster } from './redis/connection.js';
export type { IoredisClient, IoredisCluster, NodeRedisClient, NodeRedisCluster, RedisConnection, RedisNode } from './redis/connection.js';

export interface RedisDedupStoreOptions {
  /** What the Redis keys of the records begin with. Not empty, and no digit at its end. @default 'samekey:' */
  readonly prefix?: string | undefined;
  /** ms that a command may take before it counts as failed; a claim that fails is answered with 503. @default 2_000 */
  readonly timeout?: number | undefined;
  /**
   * ms that a run without an end is kept after its lease and its key's life, for `purge()` or a repeat to turn it into
   * doubt, which is kept for ever: so run `purge()` more often than that. After them Redis deletes it, and the key is
   * fresh. Infinity keeps it until then. @default 2_592_000_000 (30 days)
   */
  readonly doubtTtl?: number | undefined;
  /**
   * ms that a row outlives its key unless `purge()` deletes it before. With `onExpired: 'refuse'` it is how long an old
   * key without a time in it is refused. @default 3_600_000 (1 hour)
   */
  readonly expiredTtl?: number | undefined;
  /** For `timeout` only: leases and expiry follow the clock of Redis. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Hears once, after the first claim, what `check()` finds. @default console.warn */
  readonly onWarning?: ((warning: string) => void) | undefined;
}

export interface RedisDedupStore extends DedupStore<never> {
  /**
   * Says what makes this Redis unfit to keep dedup records, and what to do about it; empty when all is well.
   *
   * @throws StoreUnavailableError, or the client's error, when Redis does not answer
   */
  check(): Promise<string[]>;
}

const TIMEOUT_MS = 2_000;
const DAY_MS = 86_400_000;
/** For somebody to look at what was left behind, after a holiday too. */
const DOUBT_TTL_MS = 30 * DAY_MS;
/** Time for a purge to count it, and little memory. */
const EXPIRED_TTL_MS = 3_600_000;

// oxlint-disable-next-line no-console -- where nobody listens a key that may vanish must still not go unnoticed
const warn = (warning: string): void => console.warn(warning);

const ms = atLeast(0, 'ms');

const KINDS: Kinds<RedisDedupStoreOptions> = {
  prefix: aText,
  timeout: atLeast(1, 'ms'),
  doubtTtl: ms,
  expiredTtl: ms,
  clock: withMethods('a clock was expected, with now() and sleep()', 'now', 'sleep'),
  onWarning: aFunction,
};

/** With a key that says when it was made, even the first claim depends on the time. */
const dependsOnTime = ({ onExpired, keyMadeAt }: Claim): boolean => onExpired === 'refuse' && keyMadeAt !== undefined;

/**
 * A dedup table in Redis (5 or later, or what speaks its language), shared by all processes that use the prefix. The first
 * claim of a key is one `SET … NX PX` and one round trip, and so is its end; nothing is written without a time to live but
 * doubt. Each script touches one key: a cluster will do.
 *
 * Redis shares no transaction with a database, and may lose a claim: when it fails over to a replica that had not got it,
 * when it restarts without its last writes, when it is flushed, or when it evicts. A run whose record is lost is not
 * recorded any more, its client gets 409, and a repeat runs again. So it must never be the only record of an effect that
 * is made in a database: take a store in that database, or a unique constraint beside the effect.
 *
 * Let the client fail fast instead of queueing commands while it is offline (`disableOfflineQueue` in node-redis,
 * `enableOfflineQueue: false` in ioredis); a claim that arrives late is not made in any case.
 *
 * @throws TypeError for what is no connection, for options that do not exist or cannot work, and for a prefix under which keys could be mistaken for others
 */
export const redisDedupStore = (connection: RedisConnection, options: RedisDedupStoreOptions = {}): RedisDedupStore => {
  checkKind('redisDedupStore: the connection', connection, aRedisConnection);
  checkOptions(options, KINDS, { of: 'redisDedupStore' });
  const { prefix = 'samekey:', timeout = TIMEOUT_MS, doubtTtl = DOUBT_TTL_MS, expiredTtl = EXPIRED_TTL_MS, clock = systemClock, onWarning = warn } = options;
  const names = namesUnder(prefix);
  const commands = createCommands({ connection, clock, timeout });
  const ttl = (row: DedupRecord, now: number): number | undefined => {
    if (row.state === 'indeterminate') return undefined;
    const end = row.state === 'in_progress' ? Math.max(row.leaseUntil, row.keyExpiresAt) + doubtTtl : row.keyExpiresAt + expiredTtl;
    return Math.max(1, wholeMs(end - now));
  };
  const rows = createRows({ commands, names, ttl });
  const store = rowStore({ ...rows, tidy: createTidy(commands, names, rows) });

  let checked = false;
  const checkOnce = async (): Promise<void> => {
    if (checked) return;
    checked = true;
    for (const warning of await checkNodes(commands)) onWarning(warning);
  };

  return {
    ...store,
    async claim(claim) {
      checkOnce().catch(() => (checked = false));
      const { next, result } = claimRecord(undefined, claim, 0);
      if (!next || dependsOnTime(claim)) return store.claim(claim);
      const { head, rest } = encode(next);
      const reply = await commands.runInTime(CREATE, names.nameOf(claim), [head, rest, ttl(next, 0) ?? '']);
      return reply.outcome === 'written' ? result : rows.decide(claim, reply, (row, now) => claimRecord(row, claim, now));
    },
    async renew(hold, lease, effectStarted) {
      const values = [hold.owner, hold.fence, wholeMs(lease), effectStarted ? 1 : 0, wholeMs(doubtTtl)];
      return (await commands.run(RENEW, names.nameOf(hold), values)).outcome === 'written';
    },
    async settle(hold, settlement) {
      if (settlement.to !== 'completed') return store.settle(hold, settlement);
      const { answer, retention, keyRetention } = settlement;
      const end = Math.max(1, wholeMs(keyRetention + expiredTtl));
      const values = [hold.owner, hold.fence, wholeMs(retention), wholeMs(keyRetention), encodeAnswer(answer), end];
      const reply = await commands.run(COMPLETE, names.nameOf(hold), values);
      return reply.outcome === 'written' || rows.decide(hold, reply, (row, now) => settleRecord(row, hold, settlement, now));
    },
    check: () => checkNodes(commands),
  };
};
