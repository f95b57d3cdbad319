import type { HeadRef, KeyStore, StoredHead, Write, WriteResult } from '../../keystore/keystore.js';

/** What a person who wrote a store hands to the suite: one empty collection of heads. */
export interface KeyStoreSubject {
  /** Opens a store on these heads. A second one stands for another page or process that shares them. */
  open(): KeyStore;
  /** Damages the stored row of a head, past the store, so that it cannot be decoded any more. */
  spoil?(ref: HeadRef): Promise<void>;
  /** Takes everything away again. The suite has closed its stores by then. */
  dispose?(): Promise<void>;
}

/** One fact about key stores. `run` throws when it does not hold. */
export interface KeyStoreCase {
  readonly name: string;
  run(subject: KeyStoreSubject): Promise<void>;
}

/** A head with fields that the store knows nothing about. */
export interface TestHead extends StoredHead {
  readonly note: string;
  readonly nested: { readonly list: readonly (readonly [string, string])[]; readonly none: null; readonly flag: boolean };
}

export const CLIENT = 'default';
export const SCOPE = 'user-1';

/** An ordinary wall time; versions and times of the suite count from here. */
export const START = 1_790_000_000_000;

export const refOf = (id: string, scope: string = SCOPE, client: string = CLIENT): HeadRef => ({ client, scope, id });

export const headOf = (ref: HeadRef, fields: Partial<TestHead> = {}): TestHead => ({
  ...ref,
  version: START,
  shelf: 'open',
  due: START,
  writtenAt: START,
  format: 1,
  note: 'naïve “text” \u0000 🧾',
  nested: { list: [['x-a', '1'], ['x-a', '2']], none: null, flag: true },
  request: null,
  response: null,
  ...fields,
});

export const begin = (head: StoredHead): Write => ({ ref: head, expect: 'absent', next: head });

export const replace = (head: StoredHead, fields: Partial<TestHead> = {}): Write => ({
  ref: head,
  expect: head.version,
  next: { ...head, version: head.version + 1, ...fields },
});

export const remove = (head: StoredHead): Write => ({ ref: head, expect: head.version, next: undefined });

export const kindsOf = (results: readonly WriteResult[]): string[] => results.map(({ kind }) => kind);

export const bytes = (length: number, seed = 1): ArrayBuffer => Uint8Array.from({ length }, (_, at) => (at * 31 + seed) & 0xff).buffer;

export const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

/** Reads a shelf page by page, as start-up and resume do. */
export const readAll = async (store: KeyStore, shelf: StoredHead['shelf'], limit: number, between: () => Promise<void> = async () => {}): Promise<StoredHead[]> => {
  const all: StoredHead[] = [];
  for (;;) {
    const page: StoredHead[] = await store.scan({ client: CLIENT, shelf, limit, ...(all.length > 0 && { after: all.at(-1) as StoredHead }) });
    all.push(...page);
    if (page.length < limit) return all;
    await between();
  }
};
