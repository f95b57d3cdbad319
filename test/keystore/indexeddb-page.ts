import { indexedDBKeyStore } from '../../src/keystore/indexeddb.js';
import type { StoredHead } from '../../src/keystore/keystore.js';
import { CLIENT, begin, headOf, refOf, replace, times } from '../../src/testing/keystore/subject.js';

const store = indexedDBKeyStore({ name: 'pages' });
let seen: StoredHead[] = [];

/** getRandomValues gives so many at a time. */
const MAX_RANDOM_BYTES = 65_536;

const randomBytes = (size: number): ArrayBuffer => {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += MAX_RANDOM_BYTES) crypto.getRandomValues(bytes.subarray(at, at + MAX_RANDOM_BYTES));
  return bytes.buffer;
};

/** What the test tells a page to do. */
const shop = {
  begin: async (count: number): Promise<void> => {
    await store.commit(times(count, at => begin(headOf(refOf(`name:${at}`)))));
  },
  /** Begins heads with random bodies, which no store can compress, and tells what became of each. */
  beginSized: async (sizes: readonly (readonly [id: string, size: number])[]): Promise<string[]> => {
    const results = await store.commit(sizes.map(([id, size]) => begin(headOf(refOf(id), { request: randomBytes(size) }))));
    return results.map(result => (result.kind === 'failed' ? (result.error as { code: string }).code : result.kind));
  },
  /** Every open head, with whether it can be read. */
  list: async (): Promise<(readonly [id: string, readable: boolean])[]> =>
    (await store.scan({ client: CLIENT, shelf: 'open', limit: 1000 })).map(({ id, unreadable }) => [id, unreadable === undefined] as const),
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
