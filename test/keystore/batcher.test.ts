import { describe, expect, it } from 'vitest';
import { StoreFullError, StoreUnavailableError } from '../../src/errors.js';
import { batched } from '../../src/keystore/batcher.js';
import type { BatchLimits, KeyStoreDriver } from '../../src/keystore/batcher.js';
import type { Durability, KeyStore, StoredHead, Write, WriteResult } from '../../src/keystore/keystore.js';
import { begin, bytes, headOf, kindsOf, refOf, times } from '../../src/testing/keystore/subject.js';

interface Batch {
  readonly ids: string[];
  readonly durability: Durability;
}

const idOf = ({ ref }: Write): string => ref.id;

/** A driver that records its batches; `refuse` may throw for a batch, `wait` holds every commit back. */
const recording = (
  { refuse = () => undefined, wait = async () => {} }: { refuse?: (ids: string[]) => Error | undefined; wait?: () => Promise<void> } = {},
  limits?: BatchLimits,
): { store: KeyStore; batches: Batch[]; log: string[] } => {
  const batches: Batch[] = [];
  const log: string[] = [];
  const driver = {
    info: { engine: 'recording', survives: 'none', shared: 'instance' },
    commit: async (writes: readonly Write[], durability: Durability): Promise<WriteResult[]> => {
      const ids = writes.map(idOf);
      batches.push({ ids, durability });
      log.push(`start ${ids.length}`);
      await wait();
      log.push(`end ${ids.length}`);
      const error = refuse(ids);
      if (error !== undefined) throw error;
      return writes.map(() => ({ kind: 'ok' }));
    },
    close: async () => void log.push('close'),
  } as unknown as KeyStoreDriver;
  return { store: batched(driver, limits), batches, log };
};

const write = (id: string, size = 0): Write => begin(headOf(refOf(id), { request: size === 0 ? null : bytes(size) }));

describe('batched', () => {
  it('puts all writes of one turn into one transaction, microtasks of that turn included', async () => {
    const { store, batches } = recording();
    const late = async (depth: number): Promise<WriteResult[]> => {
      for (let at = 0; at < depth; at++) await Promise.resolve();
      return store.commit([write(`late-${depth}`)]);
    };
    await Promise.all([store.commit([write('a'), write('b')]), late(1), late(10), late(50)]);
    expect(batches.map(({ ids }) => ids)).toEqual([['a', 'b', 'late-1', 'late-10', 'late-50']]);
  });

  it('is strict when one of the calls is, and relaxed only when all are', async () => {
    const { store, batches } = recording();
    await Promise.all([store.commit([write('a')], 'relaxed'), store.commit([write('b')])]);
    await Promise.all([store.commit([write('c')], 'relaxed'), store.commit([write('d')], 'relaxed')]);
    expect(batches.map(({ durability }) => durability)).toEqual(['strict', 'relaxed']);
  });

  it('has one transaction under way at a time, and gathers what comes meanwhile', async () => {
    const { store, log } = recording({ wait: () => new Promise(resolve => setTimeout(resolve, 5)) });
    const first = store.commit([write('a')]);
    await new Promise(resolve => setTimeout(resolve, 2));
    await Promise.all([first, ...times(3, at => store.commit([write(`b${at}`)]))]);
    expect(log).toEqual(['start 1', 'end 1', 'start 3', 'end 3']);
  });

  it('bounds a transaction by writes', async () => {
    const { store, batches } = recording({}, { maxWrites: 4 });
    const results = await store.commit(times(10, at => write(`w${at}`)));
    expect(results).toHaveLength(10);
    expect(batches.map(({ ids }) => ids.length)).toEqual([4, 4, 2]);
  });

  it('bounds a transaction by bytes, yet takes a single write that is larger', async () => {
    const { store, batches } = recording({}, { maxBytes: 100 });
    await store.commit([write('a', 60), write('b', 60), write('c', 40), write('huge', 500), write('d', 10)]);
    expect(batches.map(({ ids }) => ids)).toEqual([['a'], ['b', 'c'], ['huge'], ['d']]);
  });

  it('finds the bad write in a batch, so that its neighbours are done and in order', async () => {
    const full = new StoreFullError('no room');
    const { store, batches } = recording({ refuse: ids => (ids.includes('w5') ? full : undefined) });
    const results = await store.commit(times(8, at => write(`w${at}`)));
    expect(results.map((result, at) => (result.kind === 'failed' ? [at, result.error] : result.kind))).toEqual(['ok', 'ok', 'ok', 'ok', 'ok', [5, full], 'ok', 'ok']);
    expect(batches.map(({ ids }) => ids.join()).at(-1)).toBe('w6,w7');
  });

  it('tells every caller when the whole store is out of reach, and asks it once only', async () => {
    const gone = new StoreUnavailableError('gone');
    const { store, batches } = recording({ refuse: () => gone });
    const outcomes = await Promise.allSettled([store.commit([write('a')]), store.commit([write('b'), write('c')])]);
    expect(outcomes).toEqual([
      { status: 'rejected', reason: gone },
      { status: 'rejected', reason: gone },
    ]);
    expect(batches).toHaveLength(1);
  });

  it('works again after the store was out of reach', async () => {
    let broken = true;
    const { store } = recording({ refuse: () => (broken ? new StoreUnavailableError('gone') : undefined) });
    await expect(store.commit([write('a')])).rejects.toThrow('gone');
    broken = false;
    expect(kindsOf(await store.commit([write('a')]))).toEqual(['ok']);
  });

  it('never shows the driver what is not plain data', async () => {
    const { store, batches } = recording();
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    const bad = [{ a: new Headers() }, { a: [Symbol('b')] }, { a: Number.POSITIVE_INFINITY }, circular];
    const results = await store.commit(bad.map((note, at) => ({ ...write(`bad${at}`), next: { ...headOf(refOf(`bad${at}`)), ...note } as StoredHead })));
    expect(kindsOf(results)).toEqual(['failed', 'failed', 'failed', 'failed']);
    expect(String((results[0] as { error: unknown }).error)).toContain('cannot keep a: it is a Headers');
    expect(batches).toEqual([]);
  });

  it('drains before it closes, and commits of a closing store wait for it', async () => {
    const { store, log } = recording({ wait: () => new Promise(resolve => setTimeout(resolve, 2)) });
    const before = store.commit([write('a')]);
    const closed = store.close();
    await before;
    const after = closed.then(() => store.commit([write('b')]));
    await after;
    expect(log).toEqual(['start 1', 'end 1', 'close', 'start 1', 'end 1']);
  });
});
