import { hasMethods, type Kind } from './checks.js';

/** A client of a database, by what it can do: drivers and libraries are known by shape only. */
interface Client {
  readonly methods: readonly string[];
  /** What makes a database or a connection of it. */
  readonly from: string;
  readonly store: string;
}

/** The first that fits counts: a pool of mysql2 can do what one of pg can. */
const CLIENTS: readonly Client[] = [
  { methods: ['getConnection', 'execute'], from: 'fromMysql2(pool)', store: 'mysqlDedupStore' },
  { methods: ['withoutPlugins', 'transaction'], from: 'fromKysely(kysely)', store: 'postgresDedupStore' },
  { methods: ['raw', 'transaction'], from: 'fromKnex(knex)', store: 'postgresDedupStore' },
  { methods: ['execute', 'transaction'], from: 'fromDrizzle(drizzle, sql)', store: 'postgresDedupStore' },
  { methods: ['unsafe', 'begin'], from: 'fromPostgresJs(sql)', store: 'postgresDedupStore' },
  { methods: ['prepare', 'exec'], from: 'fromNodeSqlite(database)', store: 'sqliteDedupStore' },
  { methods: ['connect', 'query'], from: 'fromPg(pool)', store: 'postgresDedupStore' },
  { methods: ['sendCommand', 'nodeClient'], from: 'fromNodeRedisCluster(cluster)', store: 'redisDedupStore' },
  // Before node-redis, whose clients have no such method: ioredis has a sendCommand too, with other arguments.
  { methods: ['call', 'sendCommand'], from: 'fromIoredis(client)', store: 'redisDedupStore' },
  { methods: ['sendCommand'], from: 'fromNodeRedis(client)', store: 'redisDedupStore' },
];

const DATABASE = ['query', 'transaction'] as const;
const CONNECTION = ['send', 'nodes'] as const;
const STORE = ['claim', 'renew', 'settle', 'resolve', 'get', 'purge'] as const;

const clientOf = (value: unknown): Client | undefined => CLIENTS.find(({ methods }) => hasMethods(value, methods));

const fromAdvice = (value: unknown): string | undefined => {
  const client = clientOf(value);
  return client && `This is a client of a database: wrap it, as in ${client.from}.`;
};

/** A database of `samekey/sql`. */
export const aDatabase: Kind = {
  expected: 'a database of samekey/sql was expected, such as fromPg(pool), fromMysql2(pool) or fromNodeSqlite(database) make',
  fits: value => hasMethods(value, DATABASE),
  advice: fromAdvice,
};

/** A connection to Redis. */
export const aRedisConnection: Kind = {
  expected: 'a connection was expected, such as fromNodeRedis(client) or fromIoredis(client) make',
  fits: value => hasMethods(value, CONNECTION),
  advice: fromAdvice,
};

/** A dedup store. */
export const aDedupStore: Kind = {
  expected: 'a dedup store was expected, such as postgresDedupStore(fromPg(pool)) or memoryDedupStore() make',
  fits: value => hasMethods(value, STORE),
  advice(value) {
    if (hasMethods(value, DATABASE)) return 'This is a database: use postgresDedupStore(database), or the store of its kind.';
    if (hasMethods(value, CONNECTION)) return 'This is a connection to Redis: use redisDedupStore(connection).';
    const client = clientOf(value);
    return client && `This is a client of a database: use ${client.store}(${client.from}).`;
  },
};
