import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { newKey } from '../../../src/key.js';
import { fromIoredis, fromNodeRedis, type RedisConnection } from '../../../src/server/stores/redis.js';

export const REDIS_URL: string = process.env['SAMEKEY_REDIS'] ?? 'redis://127.0.0.1:6379';

/** A connected client of one's own. */
export interface TestClient {
  readonly connection: RedisConnection;
  /** One command; a text, a number, or a list of them comes back. */
  send(...command: (string | number)[]): Promise<unknown>;
  close(): Promise<void>;
}

export type Connect = (url?: string) => Promise<TestClient>;

const clientOf = (connection: RedisConnection, close: () => Promise<void>): TestClient => ({
  connection,
  send: (...command) => connection.send(command.map(String)),
  close,
});

export const connectNodeRedis: Connect = async (url = REDIS_URL) => {
  const client = createClient({ url, socket: { reconnectStrategy: 20 } });
  // A client without a listener throws when its server goes away.
  client.on('error', () => {});
  await client.connect();
  return clientOf(fromNodeRedis(client), async () => client.destroy());
};

export const connectIoredis: Connect = async (url = REDIS_URL) => {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on('error', () => {});
  await client.connect();
  return clientOf(fromIoredis(client), async () => client.disconnect());
};

export const CLIENTS: Record<string, Connect> = { 'node-redis': connectNodeRedis, ioredis: connectIoredis };

/** Keys of one Redis are shared by all test files; each test has its own. */
export const freshPrefix = (): string => `samekey-test:${newKey()}:`;

const AGE = `
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local ms = tonumber(ARGV[1])
local line = string.match(value, '^[^\\n]*')
local head = cjson.decode(line)
for _, name in ipairs({ 'leaseUntil', 'firstSeenAt', 'settledAt', 'resultExpiresAt', 'keyExpiresAt' }) do
  if head[name] then head[name] = head[name] - ms end
end
local aged = cjson.encode(head) .. string.sub(value, #line + 1)
local ttl = redis.call('PTTL', KEYS[1])
if ttl < 0 then redis.call('SET', KEYS[1], aged)
elseif ttl <= ms then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], aged, 'PX', ttl - ms) end
return 1`;

/** The keys of records begin with a length. */
const recordsUnder = async ({ send }: TestClient, prefix: string): Promise<string[]> => (await send('KEYS', `${prefix}[0-9]*`)) as string[];

/** Redis keeps the machine's time, which no test can move: the rows get older instead, and so does their time to live. */
export const age = async (client: TestClient, prefix: string, ms: number): Promise<void> => {
  const names = await recordsUnder(client, prefix);
  await Promise.all(names.map(name => client.send('EVAL', AGE, 1, name, ms)));
};

export const dropAll = async ({ send }: TestClient, prefix: string): Promise<void> => {
  const names = (await send('KEYS', `${prefix}*`)) as string[];
  if (names.length > 0) await send('DEL', ...names);
};
