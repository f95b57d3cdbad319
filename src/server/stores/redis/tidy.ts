import type { DedupRecord, Tidied } from '../../record.js';
import { isChange, type Rows } from '../../row-store.js';
import type { Commands, Reply } from './commands.js';
import type { Names } from './names.js';
import type { RedisRows } from './rows.js';
import { READ } from './scripts.js';
import { decode } from './value.js';

/** Keys that a node is asked for at once: enough to be quick, few enough not to hold up claims. */
const PAGE = 100;

async function* scan(commands: Commands, pattern: string): AsyncGenerator<string[], undefined> {
  for (const node of await commands.nodes()) {
    let cursor = '0';
    do {
      const reply = await commands.send(node, ['SCAN', cursor, 'MATCH', pattern, 'COUNT', String(PAGE)]);
      const [next, page] = reply as [unknown, unknown[]];
      cursor = String(next);
      yield page.map(String);
    } while (cursor !== '0');
  }
  return undefined;
}

/**
 * Tidies rows under their keys. A call that stopped at its limit is continued by the next one; one that came to the end
 * is followed by a new round.
 */
export const createTidy = (commands: Commands, { pattern }: Names, { swap }: RedisRows): Rows['tidy'] => {
  let pages: AsyncGenerator<string[], undefined> | undefined;
  const pending: string[] = [];

  const nextPage = async (): Promise<readonly string[] | undefined> => {
    if (pending.length > 0) return pending.splice(0);
    pages ??= scan(commands, pattern);
    const { value } = await pages.next().catch((error: unknown) => {
      pages = undefined;
      throw error;
    });
    if (!value) pages = undefined;
    return value;
  };

  const tidyOne = async (name: string, seen: Reply, tidy: (row: DedupRecord, now: number) => Tidied): Promise<Tidied> => {
    const tidied: Tidied = seen.value === '' ? { kind: 'kept' } : tidy(decode(name, seen.value), seen.now);
    if (!isChange(tidied)) return tidied;
    const { outcome } = await swap(name, seen, 'next' in tidied ? tidied.next : undefined);
    // Somebody uses it: the next round looks at it again.
    return outcome === 'written' ? tidied : { kind: 'kept' };
  };

  return async (tidy, limit) => {
    // By name, because SCAN may give a key twice.
    const done = new Map<string, Tidied>();
    let left = limit;
    for (let page = await nextPage(); page; page = left > 0 ? await nextPage() : undefined) {
      // Without their bodies: tidying drops them, or leaves them where they are.
      const seen = await Promise.all(page.map(name => commands.run(READ, name, ['bodiless'])));
      for (const [index, name] of page.entries()) {
        if (left === 0) {
          pending.push(name);
          continue;
        }
        const tidied = await tidyOne(name, seen[index] as Reply, tidy);
        if (tidied.kind !== 'kept') done.set(name, tidied);
        if (isChange(tidied)) left -= 1;
      }
    }
    return [...done.values()];
  };
};
