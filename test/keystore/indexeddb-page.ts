import { indexedDBKeyStore } from '../../src/keystore/indexeddb.js';
import type { StoredHead } from '../../src/keystore/keystore.js';
import { CLIENT, begin, headOf, refOf, replace, times } from '../../src/testing/keystore/subject.js';

const store = indexedDBKeyStore({ name: 'pages' });
let seen: StoredHead[] = [];

/** What the test tells a page to do. */
const shop = {
  begin: async (count: number): Promise<void> => {
    await store.commit(times(count, at => begin(headOf(refOf(`name:${at}`)))));
  },
  /** Reads the open heads, and remembers them for a claim. */
  look: async (): Promise<number> => {
    seen = await store.scan({ client: CLIENT, shelf: 'open', limit: 1000 });
    return seen.length;
  },
  /** Claims every head as it was seen, each on its own, and tells which it got. */
  claim: async (note: string): Promise<string[]> => {
    const results = await Promise.all(seen.map(head => store.commit([replace(head, { note })])));
    return seen.filter((_, at) => results[at]?.[0]?.kind === 'ok').map(({ id }) => id);
  },
  owner: () => store.owner(),
  liveness: (owner: string) => store.liveness(owner),
};

export type Shop = typeof shop;

Object.assign(globalThis, { shop });
