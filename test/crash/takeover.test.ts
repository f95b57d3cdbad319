import { describe, expect, test } from 'vitest';
import { fileKeyStore } from '../../src/keystore/file.js';
import type { Head } from '../../src/operation.js';
import { expectOneEach, go, kill, learned, openScene, requestsFor, truth, type Scene } from './support/scene.js';

/** Only catches hangs: processes start slowly on a busy machine. */
const PATIENCE_MS = 60_000;

/** ms. Short, so that a test can wait for two of them; long enough that a busy machine does not lose it between two renewals. */
const LEASE_MS = 1_000;

const ORDER = '42';

/** When the lease ends that a stopped process holds. */
const leaseEnd = async ({ directory }: Scene): Promise<number> => {
  const store = fileKeyStore<Head>(directory);
  const head = await store.get({ client: 'default', scope: 'acct_1', id: `name:order:${ORDER}:charge` });
  await store.close();
  return head?.lease?.until ?? Number.NaN;
};

describe('a second process on the same directory', { timeout: PATIENCE_MS }, () => {
  test.each(['calls the same name', 'resumes'])('takes over at once when the first is killed, and %s', async what => {
    const scene = await openScene();
    const { server, shop } = scene;
    server.script({ kind: 'hang' });
    const second = shop({ orders: [ORDER], stopAt: 'start', resume: what === 'resumes' });
    await second.line('at start');
    const first = shop({ orders: [ORDER] });
    await server.arrived(1);
    await kill(first);
    const since = performance.now();
    go(second);
    await server.arrived(2);
    // Far below the lease of 15 s, so it holds only if the death was noticed; far above what it takes, for busy machines.
    expect(performance.now() - since).toBeLessThan(10_000);
    await second.line('closed');
    expect(learned([second])).toEqual(truth(scene));
    await expectOneEach(scene, [ORDER]);
  });

  test('C50: a stopped process keeps its operation for its lease and one more; then the second takes over, and the first wakes up harmless', async () => {
    const scene = await openScene();
    const { server, shop } = scene;
    server.script({ kind: 'hang' });
    const second = shop({ orders: [ORDER], stopAt: 'start', lease: LEASE_MS });
    const first = shop({ orders: [ORDER], lease: LEASE_MS });
    await Promise.all([second.line('at start'), server.arrived(1)]);
    first.child.kill('SIGSTOP');
    const until = await leaseEnd(scene);
    go(second);
    await server.arrived(2);
    expect(Date.now()).toBeGreaterThanOrEqual(until + LEASE_MS);
    await second.line('closed');
    server.release();
    first.child.kill('SIGCONT');
    await first.line('closed');
    expect(learned([first])).toEqual(truth(scene));
    expect(learned([second])).toEqual(truth(scene));
    expect(requestsFor(scene, ORDER)).toHaveLength(2);
    await expectOneEach(scene, [ORDER]);
  });

  test('C50: a process that was stopped before a resend and fenced off meanwhile sends nothing more, and tells what the record says', async () => {
    const scene = await openScene();
    const { server, shop } = scene;
    server.script({ kind: 'status', status: 503 });
    const second = shop({ orders: [ORDER], stopAt: 'start', lease: LEASE_MS });
    const first = shop({ orders: [ORDER], stopAt: 'before-resend', lease: LEASE_MS });
    await Promise.all([second.line('at start'), first.line('at before-resend')]);
    first.child.kill('SIGSTOP');
    const until = await leaseEnd(scene);
    go(second);
    await second.line('closed');
    expect(Date.now()).toBeGreaterThanOrEqual(until + LEASE_MS);
    go(first);
    first.child.kill('SIGCONT');
    await first.line('closed');
    expect(requestsFor(scene, ORDER)).toHaveLength(2);
    expect(learned([first])).toEqual(truth(scene));
    await expectOneEach(scene, [ORDER]);
  });

  test('a process that was stopped right before a send and fenced off meanwhile sends the same key: the effect stays one', async () => {
    const scene = await openScene();
    const { shop } = scene;
    const second = shop({ orders: [ORDER], stopAt: 'start', lease: LEASE_MS });
    const first = shop({ orders: [ORDER], stopAt: 'before-send', lease: LEASE_MS });
    await Promise.all([second.line('at start'), first.line('at before-send')]);
    first.child.kill('SIGSTOP');
    go(second);
    await second.line('closed');
    expect(requestsFor(scene, ORDER)).toHaveLength(1);
    go(first);
    first.child.kill('SIGCONT');
    await first.line('closed');
    expect(requestsFor(scene, ORDER)).toHaveLength(2);
    expect(learned([first])).toEqual(truth(scene));
    await expectOneEach(scene, [ORDER]);
  });

  test('C50: two processes that resume 20 operations of a dead one at the same moment send each of them once', async () => {
    const scene = await openScene();
    const { server, shop } = scene;
    const orders = Array.from({ length: 20 }, (_, at) => `order-${at}`);
    const dead = shop({ orders, stopAt: 'before-send' });
    await dead.line(`at before-send ${orders.length}`);
    await kill(dead);
    const heirs = [1, 2].map(() => shop({ orders, resume: true, stopAt: 'start' }));
    await Promise.all(heirs.map(({ line }) => line('at start')));
    heirs.forEach(go);
    await Promise.all(heirs.map(({ line }) => line('closed')));
    expect(server.requests).toHaveLength(orders.length);
    for (const heir of heirs) expect(learned([heir])).toEqual(truth(scene));
    await expectOneEach(scene, orders);
  });
});
