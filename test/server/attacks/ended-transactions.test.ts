import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PoolClient } from 'pg';
import { gate } from '../../support/gate.js';
import { bePatient } from '../../support/patience.js';
import { charge, charged, codeOf, insertCharge, isWell, openShop, send, type Charge, type Shop } from '../support/shop.js';

bePatient();

let shop: Shop;
beforeAll(async () => void (shop = await openShop()));
afterAll(() => shop.close());
beforeEach(() => shop.reset());

/** Charges, and runs statements of its own on the transaction; then answers. */
const running = (statements: readonly string[], status = 201): Charge => async (_request, context) => {
  const tx: PoolClient = await context.transaction();
  await insertCharge(tx, context);
  for (const statement of statements) await tx.query(statement);
  return new Response('done', { status });
};

const MODES = ['tx', 'single-tx', 'lease'] as const;

describe.each(MODES)('%s: a handler that ends the transaction which is not its own', mode => {
  it.each([
    ['commits it', ['COMMIT'], 201],
    ['commits it, and begins another', ['COMMIT', 'BEGIN'], 201],
    ['commits it, and refuses', ['COMMIT'], 422],
    ['commits it, and fails', ['COMMIT'], 500],
  ] as const)('%s: the key is in doubt, and its effect is not repeated', async (_name, statements, status) => {
    const dedup = shop.dedup({ mode });
    const first = await send(dedup, running(statements, status), 'k');
    // Under a lease a refusal needs no transaction to be recorded, so it is answered as it was meant.
    if (mode === 'lease' && status >= 400) expect(first.status).toBe(status);
    else expect([first.status, await codeOf(first), String(shop.failures)]).toEqual([500, 'handler_failed', expect.stringContaining('Leave COMMIT and ROLLBACK to samekey')]);
    const again = await send(dedup, charge, 'k');
    expect([again.status, await codeOf(again), await shop.charges('k')]).toEqual([409, 'idempotency_indeterminate', 1]);
    expect(await isWell(shop.pool)).toBe(true);
  });

  it.each([['ROLLBACK'], ['ROLLBACK', 'BEGIN']])('rolls it back (%s, %s): no answer without its effect is stored', async (...statements) => {
    const dedup = shop.dedup({ mode });
    expect((await send(dedup, running(statements.filter(Boolean)), 'k')).status).toBe(500);
    expect([await shop.charges('k'), await shop.state('k')]).not.toContain('completed');
    expect([await codeOf(await send(dedup, charge, 'k')), await shop.charges('k')]).toEqual(['idempotency_indeterminate', 0]);
    expect(await isWell(shop.pool)).toBe(true);
  });

  it('may use savepoints, and refuse after a statement that failed', async () => {
    const dedup = shop.dedup({ mode });
    expect((await send(dedup, running(['SAVEPOINT a', 'ROLLBACK TO a', 'RELEASE a']), 'savepoints')).status).toBe(201);
    const refused: Charge = async (_request, context) => {
      const tx = await context.transaction();
      await tx.query('SELECT 1 / 0').catch(() => {});
      return new Response('refused', { status: 422 });
    };
    expect([(await send(dedup, refused, 'k')).status, await shop.state('k')]).toEqual([422, 'completed']);
  });
});

it.each(MODES)('%s: what a handler does after its own ROLLBACK is not repeated', async mode => {
  const dedup = shop.dedup({ mode });
  const first = await send(dedup, async (_request, context) => {
    const tx = await context.transaction();
    await tx.query('ROLLBACK');
    return charged(await insertCharge(tx, context));
  }, 'k');
  const again = await send(dedup, charge, 'k');
  expect([first.status, await codeOf(again), await shop.charges('k')]).toEqual([500, 'idempotency_indeterminate', 1]);
  expect(await dedup.resolve({ scope: 'acme', name: 'charge', key: 'k' }, 'not-applied')).toBe(true);
  expect((await send(dedup, charge, 'k')).status).toBe(201);
});

it('tx: a COMMIT of the handler lets a duplicate in; then the first run says so, and stores nothing', async () => {
  const dedup = shop.dedup();
  const [committed, end] = [gate(), gate()];
  const first = send(dedup, async (_request, context) => {
    const tx = await context.transaction();
    const id = await insertCharge(tx, context);
    await tx.query('COMMIT');
    committed.open();
    await end.opened;
    return charged(id);
  }, 'k');
  await committed.opened;
  const second = await send(dedup, charge, 'k');
  end.open();
  expect([(await first).status, second.status, String(shop.failures)]).toEqual([500, 201, expect.stringContaining('Leave COMMIT and ROLLBACK to samekey')]);
});
