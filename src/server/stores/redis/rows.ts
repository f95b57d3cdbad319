import type { Change, DedupRecord, RecordRef } from '../../record.js';
import type { Rows } from '../../row-store.js';
import type { Commands, Reply } from './commands.js';
import type { Names } from './names.js';
import { READ, SWAP } from './scripts.js';
import { asText, decode, encode, headLine } from './value.js';

type Decide<T> = (row: DedupRecord | undefined, now: number) => Change<T>;

export interface RedisRows extends Omit<Rows, 'tidy'> {
  /** Lets `change` decide about what was read, and again for as long as somebody else writes in between. */
  decide<T>(ref: RecordRef, seen: Reply, change: Decide<T>): Promise<T>;
  /** Writes `next`, or deletes the key, if it still is what was read. */
  swap(name: string, seen: Reply, next: DedupRecord | undefined): Promise<Reply>;
}

export interface RowsOptions {
  readonly commands: Commands;
  readonly names: Names;
  /** ms for which Redis keeps the row from now on; undefined: until somebody deletes it. */
  readonly ttl: (row: DedupRecord, now: number) => number | undefined;
}

/** The records as plain rows: read, decided about here, and written if nobody else wrote in between. */
export const createRows = ({ commands, names, ttl }: RowsOptions): RedisRows => {
  const swap: RedisRows['swap'] = (name, seen, next) =>
    commands.runInTime(SWAP, name, [headLine(seen.value), next ? asText(encode(next)) : '', (next && ttl(next, seen.now)) ?? '']);

  const decide: RedisRows['decide'] = async (ref, first, change) => {
    const name = names.nameOf(ref);
    // It ends, because a swap is lost only to one that was won.
    for (let seen = first; ; ) {
      const { next, result } = change(seen.value === '' ? undefined : decode(name, seen.value), seen.now);
      if (!next) return result;
      const reply = await swap(name, seen, next);
      if (reply.outcome === 'written') return result;
      seen = reply;
    }
  };

  return {
    decide,
    swap,
    update: async (ref, change) => decide(ref, await commands.run(READ, names.nameOf(ref), []), change),
    async get(ref) {
      const name = names.nameOf(ref);
      const { value } = await commands.run(READ, name, []);
      return value === '' ? undefined : decode(name, value);
    },
  };
};
