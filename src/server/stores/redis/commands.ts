import type { Clock } from '../../../clock.js';
import { StoreUnavailableError } from '../../../errors.js';
import { within } from '../../../within.js';
import type { RedisConnection, RedisNode } from './connection.js';
import { wholeMs } from './value.js';

/** What a script found or did. `now`: ms on the clock of Redis. `value`: '' for none. */
export interface Reply {
  readonly now: number;
  readonly outcome: 'read' | 'written' | 'lost' | 'late';
  readonly value: string;
}

/** Commands that answer in time or reject. */
export interface Commands {
  run(script: string, name: string, values: readonly (string | number)[]): Promise<Reply>;
  /**
   * Like `run`, for a script that gives somebody the right to run. Its first value is a deadline: a client may send a
   * command long after its caller gave up, and a key claimed then would be held by nobody.
   */
  runInTime(script: string, name: string, values: readonly (string | number)[]): Promise<Reply>;
  send(node: RedisNode, command: readonly string[]): Promise<unknown>;
  nodes(): Promise<readonly RedisNode[]>;
}

export interface CommandOptions {
  readonly connection: RedisConnection;
  readonly clock: Clock;
  /** ms */
  readonly timeout: number;
}

const isMissingScript = (error: unknown): boolean => error instanceof Error && error.message.startsWith('NOSCRIPT');

/** Sends commands, scripts by their hash. */
export const createCommands = ({ connection, clock, timeout }: CommandOptions): Commands => {
  const hashes = new Map<string, Promise<string>>();
  const elapsed = (): number => clock.monotonic?.() ?? clock.now();
  /** When Redis last told its time, there and here. At first nothing is in time, which is answered with the time. */
  let told = { now: 0, at: Infinity };

  const limited = <T>(work: Promise<T>): Promise<T> => {
    const message = `Redis did not answer within ${timeout} ms. Look whether it is up and reachable, or raise redisDedupStore's timeout.`;
    return within({ clock, ms: timeout, expired: () => new StoreUnavailableError(message) }, work);
  };

  const hashOf = (script: string): Promise<string> => {
    const known = hashes.get(script);
    if (known) return known;
    const hash = limited(connection.send(['SCRIPT', 'LOAD', script])).then(String);
    hashes.set(script, hash);
    hash.catch(() => hashes.delete(script));
    return hash;
  };

  const run: Commands['run'] = async (script, name, values) => {
    const rest = ['1', name, ...values.map(String)];
    const hash = await hashOf(script);
    const reply = await limited(connection.send(['EVALSHA', hash, ...rest], name)).catch((error: unknown) => {
      if (!isMissingScript(error)) throw error;
      return limited(connection.send(['EVAL', script, ...rest], name));
    });
    const [now, outcome, value] = reply as [unknown, unknown, unknown];
    told = { now: Number(now), at: elapsed() };
    return { now: told.now, outcome: String(outcome) as Reply['outcome'], value: String(value) };
  };

  const deadline = (): number => Math.max(0, wholeMs(told.now + elapsed() - told.at + timeout));

  return {
    run,
    async runInTime(script, name, values) {
      for (let again = 0; again < 2; again += 1) {
        const reply = await run(script, name, [deadline(), ...values]);
        if (reply.outcome !== 'late') return reply;
      }
      throw new StoreUnavailableError(`A claim reached Redis more than ${timeout} ms late, and was not made. Look whether Redis or this process is overloaded.`);
    },
    send: (node, command) => limited(node.send(command)),
    nodes: () => limited(connection.nodes()),
  };
};
