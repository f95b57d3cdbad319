import { systemClock, type Clock } from '../../clock.js';
import { frame } from '../../key.js';
import type { DedupRecord, Tidied } from '../record.js';
import type { OwnedDedupStore } from '../store.js';
import { isChange, rowStore, type Rows } from '../row-store.js';

export interface MemoryDedupStoreOptions {
  /** Whose time leases and expiry follow. @default systemClock */
  readonly clock?: Clock | undefined;
}

/** A dedup table that lives and dies with this object. For tests, and for a mock that may forget at a reload. */
export const memoryDedupStore = ({ clock = systemClock }: MemoryDedupStoreOptions = {}): OwnedDedupStore => {
  const table = new Map<string, DedupRecord>();
  const entries: object[] = [];
  const rows: Rows = {
    get: async ({ scope, key }) => table.get(frame([scope, key])),
    async update({ scope, key }, change) {
      const id = frame([scope, key]);
      const { next, result } = change(table.get(id), clock.now());
      if (next) table.set(id, next);
      return result;
    },
    async tidy(tidy, limit) {
      const done: Tidied[] = [];
      let left = limit;
      for (const [id, row] of table) {
        const tidied = tidy(row, clock.now());
        if (tidied.kind === 'kept') continue;
        done.push(tidied);
        if (tidied.kind === 'deleted') table.delete(id);
        if ('next' in tidied) table.set(id, tidied.next);
        if (isChange(tidied) && --left === 0) break;
      }
      return done;
    },
  };
  return {
    ...rowStore(rows),
    journal: {
      append: async entry => void entries.push(entry),
      read: async () => [...entries],
    },
    async clear() {
      table.clear();
      entries.length = 0;
    },
  };
};
