import { checkKind, withMethods, type Kind } from '../../../checks.js';

/** One Redis server. */
export interface RedisNode {
  /** Sends one command and gives its reply. It rejects with what Redis, or the connection, says. */
  send(command: readonly string[]): Promise<unknown>;
}

/** What the store needs of a Redis client: a few lines around the one that the application has. */
export interface RedisConnection {
  /** Like {@link RedisNode.send}. A cluster sends the command to the node of `key`; without a key, to any. */
  send(command: readonly string[], key?: string): Promise<unknown>;
  /** The servers that hold keys: one, or the masters of a cluster. */
  nodes(): Promise<readonly RedisNode[]>;
}

/** The part of a node-redis client, or of a pool of them, that is used. */
export interface NodeRedisClient {
  sendCommand(command: string[]): Promise<unknown>;
}

/** The part of a node-redis cluster that is used. */
export interface NodeRedisCluster<Node = unknown> {
  sendCommand(key: string | undefined, isReadonly: boolean, command: string[]): Promise<unknown>;
  readonly masters: readonly Node[];
  nodeClient(node: Node): Promise<NodeRedisClient>;
}

/** The part of an ioredis client that is used. */
export interface IoredisClient {
  call(command: string, words: string[]): Promise<unknown>;
  readonly options: { readonly keyPrefix?: string | undefined };
}

/** The part of an ioredis cluster that is used. */
export interface IoredisCluster extends IoredisClient {
  nodes(role: 'master'): readonly IoredisClient[];
}

const NODE_REDIS: Kind = withMethods('a client of the package redis was expected, as in fromNodeRedis(await createClient({ url }).connect())', 'sendCommand');
const NODE_REDIS_CLUSTER: Kind = withMethods('a cluster of the package redis was expected, as createCluster makes it', 'sendCommand', 'nodeClient');
const IOREDIS: Kind = withMethods('a client or a cluster of the package ioredis was expected, as in fromIoredis(new Redis(url))', 'call');

const nodeRedisNode = (client: NodeRedisClient): RedisNode => ({ send: command => client.sendCommand([...command]) });

/** Takes a connected client of the package `redis`, or a pool of them (`createClient`, `createClientPool`). */
export const fromNodeRedis = (client: NodeRedisClient): RedisConnection => {
  checkKind('What fromNodeRedis was given', client, NODE_REDIS);
  const node = nodeRedisNode(client);
  return { send: command => node.send(command), nodes: async () => [node] };
};

/** Takes a connected cluster of the package `redis` (`createCluster`). */
export const fromNodeRedisCluster = <Node>(cluster: NodeRedisCluster<Node>): RedisConnection => {
  checkKind('What fromNodeRedisCluster was given', cluster, NODE_REDIS_CLUSTER);
  return {
    send: (command, key) => cluster.sendCommand(key, false, [...command]),
    nodes: async () => Promise.all(cluster.masters.map(async node => nodeRedisNode(await cluster.nodeClient(node)))),
  };
};

const ioredisNode = (client: IoredisClient): RedisNode => ({ send: ([name = '', ...words]) => client.call(name, words) });

/**
 * Takes a client or a cluster of the package `ioredis`.
 *
 * @throws TypeError for a client with a `keyPrefix`: it would apply to some commands and not to others
 */
export const fromIoredis = (client: IoredisClient | IoredisCluster): RedisConnection => {
  checkKind('What fromIoredis was given', client, IOREDIS);
  const { keyPrefix } = client.options;
  if (keyPrefix) {
    throw new TypeError(`The ioredis client has the keyPrefix "${keyPrefix}", which SCAN does not know of. Give a client without one, and the prefix to redisDedupStore.`);
  }
  const node = ioredisNode(client);
  return {
    send: command => node.send(command),
    nodes: async () => ('nodes' in client ? client.nodes('master').map(ioredisNode) : [node]),
  };
};
