import type { Commands } from './commands.js';
import type { RedisNode } from './connection.js';

const EVICTING = (policy: string): string =>
  `Redis has the maxmemory-policy "${policy}", and "noeviction" was expected: when memory runs short, Redis may delete a key whose request has been executed, ` +
  'and a repeat would be executed again. Set "maxmemory-policy noeviction", or give the dedup store a Redis of its own.';

const UNKNOWN =
  'The maxmemory-policy of Redis could not be read (INFO memory). Make sure that it is "noeviction": with another one Redis may delete the key of a ' +
  'request that has been executed, and a repeat would be executed again.';

/** Redis itself said no, to the command or to the user; anything else is no answer at all. */
const isRefusal = (error: unknown): boolean => error instanceof Error && /^(?:ERR|NOPERM) /.test(error.message);

const checkNode = async (commands: Commands, node: RedisNode): Promise<string | undefined> => {
  // Not CONFIG GET, which managed services forbid.
  const info = await commands.send(node, ['INFO', 'memory']).then(String, (error: unknown) => {
    if (isRefusal(error)) return '';
    throw error;
  });
  const policy = /^maxmemory_policy:(.*?)\r?$/m.exec(info)?.[1];
  if (policy === undefined) return UNKNOWN;
  return policy === 'noeviction' ? undefined : EVICTING(policy);
};

/** What makes the servers unfit to keep dedup records. @throws StoreUnavailableError, or the connection's error */
export const checkNodes = async (commands: Commands): Promise<string[]> => {
  const found = await Promise.all((await commands.nodes()).map(node => checkNode(commands, node)));
  return [...new Set(found.filter(warning => warning !== undefined))];
};
