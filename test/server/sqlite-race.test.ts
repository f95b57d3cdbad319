import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createDedup, type Dedup, type DedupStore } from '../../src/server/index.js';
import { sqliteDedupStore } from '../../src/server/stores/sqlite.js';
import { fromNodeSqlite } from '../../src/sql/index.js';
import { claimOf, kindsOf } from '../../src/testing/dedup/subject.js';
import { startScript, temporaryDirectory } from '../keystore/support/processes.js';
import { gate } from '../support/gate.js';
import { bePatient } from '../support/patience.js';
import { requestOf } from './support/endpoint.js';
import { crowd, type Crowd } from './support/crowd.js';
import { freshSqlite } from './support/sqlite.js';

bePatient();

const openFile = (path: string): DatabaseSync => {
  const sqlite = new DatabaseSync(path);
  onTestFinished(() => sqlite.close());
  return sqlite;
};

/** Connections of one process to a file. */
const openConnections = async (count: number): Promise<DatabaseSync[]> => {
  const { path, close } = await freshSqlite();
  onTestFinished(close);
  return Array.from({ length: count }, () => openFile(path));
};

const dedupOn = (sqlite: DatabaseSync): Dedup<DatabaseSync> => createDedup({ store: sqliteDedupStore(fromNodeSqlite(sqlite)), scope: () => 'acme', on: { failed: () => {} } });

const charges = (sqlite: DatabaseSync): number => Number(sqlite.prepare('SELECT count(*) AS n FROM charges').get()?.['n']);

const expectOneRun = (outcomes: readonly Crowd[], count: number): void => {
  const total = (name: string): number => outcomes.reduce((sum, { told }) => sum + (told[name] ?? 0), 0);
  const others = outcomes.flatMap(({ told }) => Object.keys(told)).filter(name => !['executed', 'replayed', '409'].includes(name));
  const runs = outcomes.reduce((sum, one) => sum + one.runs, 0);
  expect({ runs, executed: total('executed'), others, all: total('executed') + total('replayed') + total('409') }).toEqual({ runs: 1, executed: 1, others: [], all: count });
};

describe('many identical requests at once', () => {
  test.each([50, 200])('28, C75: of %i over two connections exactly one runs, the others hear 409 or get its answer, and both connections are well afterwards', async count => {
    const connections = await openConnections(2);
    const outcome = await crowd(connections.map(dedupOn), count, async (_request, context) => {
      const tx = await context.transaction();
      tx.prepare('INSERT INTO charges (label) VALUES (?)').run(context.key ?? '');
      return Response.json({ charged: true }, { status: 201 });
    });
    expectOneRun([outcome], count);
    expect(connections.map(sqlite => [charges(sqlite), sqlite.isTransaction])).toEqual([[1, false], [1, false]]);
  });

  test.each([32, 200])('C92: of %i from four processes, which make the file at the same moment, one runs and nobody is inside beside it', async count => {
    const path = join(temporaryDirectory(), 'shop.db');
    const racers = Array.from({ length: 4 }, () => startScript(new URL('./support/sqlite-racer.ts', import.meta.url).pathname, [path, String(count / 4)]));
    await Promise.all(racers.map(racer => racer.line('ready')));
    for (const { child } of racers) child.stdin?.write('go\n');
    const outcomes = await Promise.all(racers.map(async racer => JSON.parse((await racer.line('outcome ')).slice('outcome '.length)) as Crowd));
    expectOneRun(outcomes, count);
    // Who closes a file last clears its log away, and has it for itself meanwhile.
    await Promise.all(racers.map(({ ended }) => ended));
    expect(charges(openFile(path))).toBe(1);
  });

  test('C77: 200 claims over two connections are never refused as busy', async () => {
    const stores = (await openConnections(2)).map(sqlite => sqliteDedupStore(fromNodeSqlite(sqlite)));
    const claims = Array.from({ length: 200 }, (_, at) => (stores[at % 2] as DedupStore).claim(claimOf(`o-${at}`, { key: `k-${at % 50}` })));
    expect(kindsOf(await Promise.all(claims))).toEqual({ 'won': 50, 'in-progress': 150 });
  });
});

test('32: 50 other keys do not wait for one whose handler goes on', async () => {
  const [sqlite] = await openConnections(1);
  const dedup = dedupOn(sqlite as DatabaseSync);
  const { opened, open } = gate();
  const entered = gate();
  const send = (key: string): Promise<Response> =>
    dedup.handle(requestOf({ key }), async () => {
      if (key === 'slow') {
        entered.open();
        await opened;
      }
      return new Response('done');
    }, { name: 'charge' });
  const slow = send('slow');
  await entered.opened;
  const others = await Promise.all(Array.from({ length: 50 }, (_, at) => send(`k${at}`)));
  expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]));
  open();
  expect((await slow).status).toBe(200);
});
