import type { StoredHead } from '../../keystore/keystore.js';
import { NEVER } from '../../keystore/keystore.js';
import { ensure, ensureEqual } from '../check.js';
import { CLIENT, SCOPE, START, begin, bytes, headOf, readAll, refOf, remove, replace, times } from './subject.js';
import type { KeyStoreCase } from './subject.js';

const idsOf = (heads: readonly StoredHead[]): string[] => heads.map(({ id }) => id);

export const readCases: readonly KeyStoreCase[] = [
  {
    name: 'a scan is ordered by due, scope, id, and never comes last',
    async run(subject) {
      const store = subject.open();
      const heads = [
        headOf(refOf('b', 's2'), { due: 5 }),
        headOf(refOf('a', 's2'), { due: 5 }),
        headOf(refOf('z', 's1'), { due: 5 }),
        headOf(refOf('m', 's9'), { due: 0 }),
        headOf(refOf('n', 's0'), { due: NEVER }),
        headOf(refOf('k', 's0'), { due: START }),
      ];
      await store.commit(heads.map(begin));
      ensureEqual(idsOf(await store.scan({ client: CLIENT, shelf: 'open', limit: 100 })), ['m', 'z', 'a', 'b', 'k', 'n'], 'the order');
      await store.close();
    },
  },
  {
    name: 'a scan gives what client, shelf, scope, dueBy and limit ask for, and nothing else',
    async run(subject) {
      const store = subject.open();
      const heads = [
        headOf(refOf('a', 's1'), { due: 1 }),
        headOf(refOf('b', 's2'), { due: 2 }),
        headOf(refOf('c', 's1'), { due: 3 }),
        headOf(refOf('d', 's1'), { due: 1, shelf: 'settled' }),
        headOf(refOf('e', 's1', 'other'), { due: 1 }),
      ];
      await store.commit(heads.map(begin));
      const ids = async (query: object): Promise<string[]> => idsOf(await store.scan({ client: CLIENT, shelf: 'open', limit: 100, ...query }));
      ensureEqual(await ids({}), ['a', 'b', 'c'], 'open heads of the client');
      ensureEqual(await ids({ shelf: 'settled' }), ['d'], 'settled heads');
      ensureEqual(await ids({ client: 'other' }), ['e'], 'another client');
      ensureEqual(await ids({ client: 'nobody' }), [], 'a client without heads');
      ensureEqual(await ids({ scope: 's1' }), ['a', 'c'], 'one scope');
      ensureEqual(await ids({ dueBy: 2 }), ['a', 'b'], 'due by 2, which includes 2');
      ensureEqual(await ids({ dueBy: 0 }), [], 'nothing due');
      ensureEqual(await ids({ limit: 2 }), ['a', 'b'], 'a limit');
      ensureEqual(await ids({ after: { due: 1, scope: 's1', id: 'a' } }), ['b', 'c'], 'after a place');
      ensureEqual(await ids({ after: { due: 2, scope: 'a', id: '' }, scope: 's1', dueBy: 3 }), ['c'], 'all together');
      ensureEqual([await store.countOpen(CLIENT), await store.countOpen('other'), await store.countOpen('nobody')], [3, 1, 0], 'open heads, counted');
      await store.commit([remove(heads[0] as StoredHead), replace(heads[1] as StoredHead, { shelf: 'settled' })]);
      ensureEqual(await store.countOpen(CLIENT), 1, 'one less for a deleted and for a settled head');
      await store.close();
    },
  },
  {
    name: 'pages give every head once, also when many are due at the same time',
    async run(subject) {
      const store = subject.open();
      const heads = times(53, at => headOf(refOf(`name:${String(at).padStart(3, '0')}`, `s${at % 3}`), { due: at < 40 ? START : NEVER }));
      await store.commit(heads.map(begin));
      for (const limit of [1, 7, 53, 100]) {
        const all = await readAll(store, 'open', limit);
        ensureEqual(all.length, 53, `heads in pages of ${limit}`);
        ensureEqual(new Set(idsOf(all)).size, 53, `each once in pages of ${limit}`);
      }
      await store.close();
    },
  },
  {
    name: 'a page that begins after a head which is gone by then loses nothing',
    async run(subject) {
      const store = subject.open();
      const heads = times(30, at => headOf(refOf(`name:${String(at).padStart(3, '0')}`), { due: START + at }));
      await store.commit(heads.map(begin));
      let turn = 0;
      const all = await readAll(store, 'open', 10, async () => {
        turn += 1;
        // The head the next page starts after goes away, one further on settles, and a new one comes at the end.
        await store.commit([
          remove(heads[turn * 10 - 1] as StoredHead),
          replace(heads[turn * 10 - 2] as StoredHead, { shelf: 'settled' }),
          begin(headOf(refOf(`name:new:${turn}`), { due: START + 100 + turn })),
        ]);
      });
      ensureEqual(idsOf(all).slice(0, 30), idsOf(heads), 'heads that were there all the time, in order');
      ensure(idsOf(all).length > 30, 'what was added behind the place is seen');
      await store.close();
    },
  },
  {
    name: 'a scan of open heads beside many settled ones gives the open ones',
    async run(subject) {
      const store = subject.open();
      await store.commit(times(600, at => begin(headOf(refOf(`done:${at}`), { shelf: 'settled', due: START + at }))), 'relaxed');
      await store.commit(times(3, at => begin(headOf(refOf(`name:${at}`), { due: START + 300 + at }))));
      ensureEqual(idsOf(await store.scan({ client: CLIENT, shelf: 'open', limit: 100 })), ['name:0', 'name:1', 'name:2'], 'the open heads');
      ensureEqual((await readAll(store, 'settled', 100)).length, 600, 'settled heads, paged');
      await store.close();
    },
  },
  {
    name: 'bytes come back exactly: none, zero, many, and both bodies',
    async run(subject) {
      const store = subject.open();
      const heads = [
        headOf(refOf('none')),
        headOf(refOf('empty'), { request: new ArrayBuffer(0), response: new ArrayBuffer(0) }),
        headOf(refOf('small'), { request: bytes(3), response: bytes(256, 7) }),
        headOf(refOf('large'), { request: bytes(1_048_576), response: bytes(70_000, 3) }),
        headOf(refOf('settled'), { shelf: 'settled', request: null, response: bytes(5000) }),
      ];
      await store.commit(heads.map(begin));
      for (const head of heads) {
        const found = await store.get(head);
        ensureEqual(found, head, `the bytes of ${head.id}`);
        ensure(found?.request === null || found?.request instanceof ArrayBuffer, 'bytes are an ArrayBuffer, not a view');
      }
      const scanned = await store.scan({ client: CLIENT, shelf: 'open', limit: 10 });
      ensureEqual(scanned.map(({ request }) => request?.byteLength ?? null), [0, 1_048_576, null, 3], 'a scan brings the bytes too');
      await store.close();
    },
  },
  {
    name: 'bytes that are changed after the commit or after a read stay as they were in the store',
    async run(subject) {
      const store = subject.open();
      const head = headOf(refOf('name:a'), { request: bytes(16) });
      await store.commit([begin(head)]);
      new Uint8Array(head.request as ArrayBuffer).fill(0);
      const first = await store.get(head);
      ensureEqual(first?.request, bytes(16), 'the writer changed its buffer');
      new Uint8Array(first?.request as ArrayBuffer).fill(0);
      ensureEqual((await store.get(head))?.request, bytes(16), 'a reader changed its buffer');
      await store.close();
    },
  },
  {
    name: 'latest is the highest wall time of any writer, 0 for an empty store, and never goes back',
    async run(subject) {
      const store = subject.open();
      ensureEqual(await store.latest(), 0, 'an empty store');
      const head = headOf(refOf('name:a'), { writtenAt: START + 500 });
      await store.commit([begin(head)]);
      ensureEqual(await store.latest(), START + 500, 'after a write');
      await store.commit([begin(headOf(refOf('name:b'), { writtenAt: START }))]);
      ensureEqual(await store.latest(), START + 500, 'after a write by a clock that was set back');
      await store.commit([begin({ ...head, writtenAt: START + 900 })]);
      ensureEqual(await store.latest(), START + 500, 'after a write that was not done');
      await store.commit([remove(head)]);
      ensureEqual(await store.latest(), START + 500, 'after its head is gone');
      await store.close();
      ensureEqual(await store.latest(), START + 500, 'after the store was opened again');
      await store.close();
    },
  },
  {
    name: 'a row that cannot be decoded is unreadable, not absent, and its neighbours are intact',
    async run(subject) {
      ensure(subject.spoil !== undefined, 'the subject can damage a row (skip this case with a reason if it truly cannot)');
      const store = subject.open();
      const heads = times(3, at => headOf(refOf(`name:${at}`), { due: START + at }));
      const spoiled = heads[1] as StoredHead;
      await store.commit(heads.map(begin));
      await subject.spoil(spoiled);
      const found = await store.get(spoiled);
      ensure(found?.unreadable, `get says why it cannot be read: ${JSON.stringify(found)}`);
      ensureEqual([found.client, found.scope, found.id, found.version, found.shelf], [CLIENT, SCOPE, 'name:1', START, 'open'], 'its place is known');
      const page = await store.scan({ client: CLIENT, shelf: 'open', limit: 10 });
      ensureEqual(page.map(({ id, unreadable }) => [id, unreadable !== undefined]), [['name:0', false], ['name:1', true], ['name:2', false]], 'the scan');
      ensureEqual([page[0], page[2]], [heads[0], heads[2]], 'its neighbours');
      const [refused] = await store.commit([begin(spoiled)]);
      ensure(refused?.kind === 'conflict' && refused.head?.unreadable, 'it cannot be begun again');
      ensureEqual(await store.commit([replace(spoiled, { note: 'reconciled' })]), [{ kind: 'ok' }], 'whoever knows its version can replace it');
      ensureEqual((await store.get(spoiled))?.unreadable, undefined, 'then it is readable');
      await store.close();
    },
  },
];
