import type { StoredHead } from '../../keystore/keystore.js';
import { ensure, ensureEqual } from '../check.js';
import { CLIENT, START, begin, headOf, kindsOf, readAll, refOf, remove, replace, times } from './subject.js';
import type { KeyStoreCase } from './subject.js';

export const sharingCases: readonly KeyStoreCase[] = [
  {
    name: 'of two claims at once exactly one wins',
    async run(subject) {
      const store = subject.open();
      const heads = times(50, at => headOf(refOf(`name:${at}`)));
      await store.commit(heads.map(begin));
      const claims = await Promise.all(heads.flatMap(head => ['a', 'b'].map(note => store.commit([replace(head, { note })]))));
      ensureEqual(claims.flatMap(kindsOf).filter(kind => kind === 'ok').length, heads.length, 'one ok for each head');
      await store.close();
    },
  },
  {
    name: 'of two stores that begin or claim the same heads exactly one wins each',
    async run(subject) {
      const stores = [subject.open(), subject.open()];
      const heads = times(100, at => headOf(refOf(`name:${at}`)));
      const race = async (write: (head: StoredHead, by: number) => Parameters<(typeof stores)[0]['commit']>[0]): Promise<void> => {
        const results = await Promise.all(heads.flatMap(head => stores.map((store, by) => store.commit(write(head, by)))));
        ensureEqual(results.flatMap(kindsOf).filter(kind => kind === 'ok').length, heads.length, 'one ok for each head');
        ensureEqual(results.flatMap(kindsOf).filter(kind => kind === 'failed').length, 0, 'nothing failed');
      };
      await race((head, by) => [begin({ ...head, due: START + by })]);
      await race((head, by) => [replace(head, { note: `driver ${by}` })]);
      await Promise.all(stores.map(store => store.close()));
    },
  },
  {
    name: 'what one store was told is done, every other store sees',
    async run(subject) {
      const [writer, reader] = [subject.open(), subject.open()];
      const head = headOf(refOf('name:a'));
      for (const durability of ['strict', 'relaxed'] as const) {
        await writer.commit([begin(head)], durability);
        ensureEqual(await reader.get(head), head, `a ${durability} begin`);
        ensureEqual((await reader.scan({ client: CLIENT, shelf: 'open', limit: 5 })).length, 1, `a ${durability} begin in a scan`);
        await writer.commit([remove(head)], durability);
        ensureEqual(await reader.get(head), undefined, `a ${durability} delete`);
      }
      await Promise.all([writer.close(), reader.close()]);
    },
  },
  {
    name: 'a thousand commits at once are all kept',
    async run(subject) {
      const store = subject.open();
      const heads = times(1000, at => headOf(refOf(`name:${String(at).padStart(4, '0')}`), { note: `n${at}` }));
      const results = await Promise.all(heads.map((head, at) => store.commit([begin(head)], at % 3 === 0 ? 'relaxed' : 'strict')));
      ensure(results.flatMap(kindsOf).every(kind => kind === 'ok'), 'every one is ok');
      ensureEqual(await readAll(store, 'open', 300), heads, 'all of them, in order');
      await store.close();
    },
  },
  {
    name: 'an owner keeps its name, differs from others, lives while its store is open and is dead afterwards',
    async run(subject) {
      const [own, other] = [subject.open(), subject.open()];
      const [name, otherName] = [await own.owner(), await other.owner()];
      ensureEqual(await own.owner(), name, 'the same name each time');
      ensure(name !== otherName, 'two stores are two owners');
      ensureEqual([await own.liveness(name), await other.liveness(name), await own.liveness(otherName)], ['alive', 'alive', 'alive'], 'both live');
      await own.close();
      ensureEqual(await other.liveness(name), 'dead', 'the owner whose store was closed');
      const reborn = await own.owner();
      ensure(reborn !== name, 'after a close it is another owner, so that a lease of the old one cannot come alive again');
      ensureEqual(await other.liveness(reborn), 'alive', 'the new owner');
      ensure((await other.liveness('nobody that this store ever named')) !== 'alive', 'a name of someone else is not alive');
      await Promise.all([own.close(), other.close()]);
    },
  },
  {
    name: 'close flushes what was committed before it, and a later call opens the store again',
    async run(subject) {
      const store = subject.open();
      const heads = times(40, at => headOf(refOf(`name:${String(at).padStart(2, '0')}`)));
      const commits = heads.map(head => store.commit([begin(head)], 'relaxed'));
      await store.close();
      ensure((await Promise.all(commits)).flatMap(kindsOf).every(kind => kind === 'ok'), 'every commit was done');
      ensureEqual(await readAll(store, 'open', 100), heads, 'they are all there after the store was opened again');
      await store.close();
      await store.close();
      const next = subject.open();
      ensureEqual(await readAll(next, 'open', 100), heads, 'another store finds them too');
      await next.close();
    },
  },
  {
    name: 'a commit while the store is closing is done, not lost',
    async run(subject) {
      const store = subject.open();
      await store.commit([begin(headOf(refOf('name:before')))]);
      const closing = store.close();
      ensureEqual(await store.commit([begin(headOf(refOf('name:during')))]), [{ kind: 'ok' }], 'the commit');
      await closing;
      ensureEqual((await readAll(store, 'open', 10)).map(({ id }) => id), ['name:before', 'name:during'], 'both heads');
      await store.close();
    },
  },
  {
    name: 'info says what survives and who shares it',
    async run(subject) {
      const { engine, survives, shared } = subject.open().info;
      ensure(engine !== '', 'the engine has a name');
      ensure(['none', 'process', 'power'].includes(survives), `survives is one of its words: ${survives}`);
      ensure(['instance', 'origin', 'host', 'fleet'].includes(shared), `shared is one of its words: ${shared}`);
    },
  },
];
