import type { StoredHead, Write } from '../../keystore/keystore.js';
import { ensure, ensureEqual } from '../check.js';
import { CLIENT, START, begin, headOf, kindsOf, refOf, remove, replace, times } from './subject.js';
import type { KeyStoreCase } from './subject.js';

/** What cannot be stored faithfully everywhere, and so is refused everywhere. */
const UNSTORABLE: readonly (readonly [what: string, value: unknown])[] = [
  ['Headers', new Headers({ a: '1' })],
  ['FormData', new FormData()],
  ['URLSearchParams', new URLSearchParams('a=1')],
  ['URL', new URL('https://shop.example')],
  ['Map', new Map([['a', 1]])],
  ['Date', new Date(0)],
  ['Blob', new Blob(['a'])],
  ['function', (): void => {}],
  ['bigint', 1n],
  ['symbol', Symbol('a')],
  ['number', Number.NaN],
];

export const writeCases: readonly KeyStoreCase[] = [
  {
    name: 'a head comes back as it was written, with fields the store does not know',
    async run(subject) {
      const store = subject.open();
      const head = headOf(refOf('name:a'));
      ensureEqual(await store.commit([begin(head)]), [{ kind: 'ok' }], 'begin is ok');
      ensureEqual(await store.get(head), head, 'get gives the head as it was written');
      await store.close();
    },
  },
  {
    name: 'what was never written is undefined',
    async run(subject) {
      const store = subject.open();
      ensureEqual(await store.get(refOf('name:never')), undefined, 'get of an absent head');
      ensureEqual(await store.scan({ client: CLIENT, shelf: 'open', limit: 10 }), [], 'scan of an empty store');
      ensureEqual(await store.commit([]), [], 'a commit of nothing answers nothing');
      await store.close();
    },
  },
  {
    name: 'client, scope and id keep heads apart, whatever characters they hold',
    async run(subject) {
      const store = subject.open();
      const odd = ['', 'a', 'a:b', '"', "'", '\\', '\u0000', 'a\u0000b', '🧾', '\uffff', '%', '_', '[1,2]', 'ÿ'.repeat(700)];
      const heads = odd.flatMap(text => [refOf(text), refOf('x', text), refOf('x', 'y', text), refOf(`${text}:`, text)].map(ref => headOf(ref)));
      const distinct = [...new Map(heads.map(head => [JSON.stringify([head.client, head.scope, head.id]), head])).values()];
      const marked = distinct.map((head, at) => ({ ...head, note: String(at) }));
      ensure(kindsOf(await store.commit(marked.map(begin))).every(kind => kind === 'ok'), 'every one begins');
      for (const head of marked) ensureEqual(await store.get(head), head, `${JSON.stringify([head.client, head.scope, head.id])} is its own head`);
      await store.close();
    },
  },
  {
    name: 'beginning what is there is a conflict that shows it and changes nothing',
    async run(subject) {
      const store = subject.open();
      const head = headOf(refOf('name:a'));
      await store.commit([begin(head)]);
      ensureEqual(await store.commit([begin({ ...head, due: 1 })]), [{ kind: 'conflict', head }], 'the second begin');
      ensureEqual(await store.get(head), head, 'the first head is unchanged');
      await store.close();
    },
  },
  {
    name: 'a settled head is there too: it cannot be begun again',
    async run(subject) {
      const store = subject.open();
      const head = headOf(refOf('name:a'), { shelf: 'settled' });
      await store.commit([begin(head)]);
      ensureEqual(await store.commit([begin({ ...head, shelf: 'open' })]), [{ kind: 'conflict', head }], 'begin over a settled head');
      await store.close();
    },
  },
  {
    name: 'a stale driver changes nothing and learns what is there',
    async run(subject) {
      const store = subject.open();
      const first = headOf(refOf('name:a'));
      const second = { ...first, version: START + 1, note: 'taken over' };
      await store.commit([begin(first)]);
      await store.commit([{ ref: first, expect: first.version, next: second }]);
      for (const stale of [replace(first), replace(first, { shelf: 'settled' }), remove(first)]) {
        ensureEqual(await store.commit([stale]), [{ kind: 'conflict', head: second }], 'a write that expects the old version');
      }
      ensureEqual(await store.get(first), second, 'the newer head is unchanged');
      await store.close();
    },
  },
  {
    name: 'expecting a version of what is absent is a conflict with nothing',
    async run(subject) {
      const store = subject.open();
      const results = await store.commit([replace(headOf(refOf('name:a'))), remove(headOf(refOf('name:b')))]);
      ensureEqual(results, times(2, () => ({ kind: 'conflict', head: undefined })), 'both writes');
      ensureEqual(await store.get(refOf('name:a')), undefined, 'nothing was written');
      await store.close();
    },
  },
  {
    name: 'a head moves to the settled shelf and back, and is found on one of them only',
    async run(subject) {
      const store = subject.open();
      const open = headOf(refOf('name:a'));
      const settled = { ...open, version: START + 1, shelf: 'settled', due: START + 5 } as const;
      const shelves = async (): Promise<number[]> =>
        Promise.all((['open', 'settled'] as const).map(async shelf => (await store.scan({ client: CLIENT, shelf, limit: 10 })).length));
      await store.commit([begin(open)]);
      ensureEqual(await shelves(), [1, 0], 'begun: open, not settled');
      await store.commit([{ ref: open, expect: open.version, next: settled }]);
      ensureEqual(await shelves(), [0, 1], 'settled: not open');
      ensureEqual(await store.get(open), settled, 'get finds the settled head');
      const updated = { ...settled, version: START + 2, note: 'answer dropped' };
      await store.commit([{ ref: open, expect: settled.version, next: updated }]);
      ensureEqual(await store.get(open), updated, 'a settled head can be changed where it is');
      await store.commit([{ ref: open, expect: updated.version, next: { ...open, version: START + 3 } }]);
      ensureEqual(await shelves(), [1, 0], 'open again');
      await store.close();
    },
  },
  {
    name: 'a deleted head is gone, and beginning it again with a later version makes old versions stale',
    async run(subject) {
      const store = subject.open();
      const head = headOf(refOf('name:a'));
      await store.commit([begin(head)]);
      ensureEqual(await store.commit([remove(head)]), [{ kind: 'ok' }], 'the delete');
      ensureEqual(await store.get(head), undefined, 'it is gone');
      const again = { ...head, version: START + 1000 };
      ensureEqual(await store.commit([begin(again)]), [{ kind: 'ok' }], 'beginning again');
      ensureEqual(await store.commit([replace(head)]), [{ kind: 'conflict', head: again }], 'a driver of the deleted head');
      await store.close();
    },
  },
  {
    name: 'writes of one commit are done in order and see each other',
    async run(subject) {
      const store = subject.open();
      const head = headOf(refOf('name:a'));
      const second = { ...head, version: START + 1 };
      const third = { ...head, version: START + 2, shelf: 'settled' } as const;
      const results = await store.commit([begin(head), begin(head), replace(head), replace(head), replace(second, { shelf: 'settled' })]);
      ensureEqual(
        results,
        [{ kind: 'ok' }, { kind: 'conflict', head }, { kind: 'ok' }, { kind: 'conflict', head: second }, { kind: 'ok' }],
        'each answer speaks of the head as the writes before left it',
      );
      ensureEqual(await store.get(head), third, 'the last good write stands');
      ensureEqual(kindsOf(await store.commit([remove(third), begin(head), remove(head)])), ['ok', 'ok', 'ok'], 'delete, begin, delete');
      ensureEqual(await store.get(head), undefined, 'the last delete stands');
      await store.close();
    },
  },
  {
    name: 'commits of one turn are done in the order of the calls',
    async run(subject) {
      const store = subject.open();
      const head = headOf(refOf('name:a'));
      const results = await Promise.all([store.commit([begin(head)]), store.commit([replace(head)], 'relaxed'), store.commit([begin(head)])]);
      ensureEqual(results.flatMap(kindsOf), ['ok', 'ok', 'conflict'], 'the three calls');
      await store.close();
    },
  },
  {
    name: 'one conflict in a commit does not touch its neighbours',
    async run(subject) {
      const store = subject.open();
      const heads = times(5, at => headOf(refOf(`name:${at}`)));
      await store.commit([begin(heads[2] as StoredHead)]);
      ensureEqual(kindsOf(await store.commit(heads.map(begin))), ['ok', 'ok', 'conflict', 'ok', 'ok'], 'answers in the order of the writes');
      for (const head of heads) ensureEqual(await store.get(head), head, `${head.id} is there`);
      await store.close();
    },
  },
  {
    name: 'C44: what cannot be stored faithfully fails alone, and the error names the field',
    async run(subject) {
      const store = subject.open();
      for (const [what, value] of UNSTORABLE) {
        const good = [headOf(refOf(`name:${what}:1`)), headOf(refOf(`name:${what}:2`))];
        const bad = { ...headOf(refOf(`name:${what}:bad`)), snapshot: { headers: [['a', value]] } };
        const results = await store.commit([good[0], bad, good[1]].map(head => begin(head as StoredHead)));
        ensureEqual(kindsOf(results), ['ok', 'failed', 'ok'], `a head with a ${what} beside two good ones`);
        const [, failed] = results;
        ensure(failed?.kind === 'failed' && String(failed.error).includes('snapshot.headers[0][1]'), `the error says where the ${what} is: ${JSON.stringify(failed)}`);
        ensureEqual(await store.get(bad), undefined, 'the bad head is absent');
      }
      const view = new Uint8Array(8).subarray(2, 4) as unknown as ArrayBuffer;
      const [result] = await store.commit([begin({ ...headOf(refOf('name:view')), request: view })]);
      ensure(result?.kind === 'failed' && String(result.error).includes('request'), 'a view instead of an ArrayBuffer is refused');
      await store.close();
    },
  },
  {
    name: 'a write that fails does not take neighbours of other calls with it',
    async run(subject) {
      const store = subject.open();
      const bad = { ...headOf(refOf('name:bad')), note: new Map() } as unknown as StoredHead;
      const good = times(20, at => headOf(refOf(`name:${at}`)));
      const calls = [...good.slice(0, 10), bad, ...good.slice(10)].map(head => store.commit([begin(head)] as Write[]));
      ensureEqual((await Promise.all(calls)).flatMap(kindsOf).filter(kind => kind !== 'ok'), ['failed'], 'one fails');
      for (const head of good) ensureEqual(await store.get(head), head, `${head.id} is there`);
      await store.close();
    },
  },
];
