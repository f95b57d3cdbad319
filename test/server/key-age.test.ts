import { v1, v4, v5, v6, v7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import { keyMadeAt } from '../../src/server/key-age.js';
import { createDedup, type Dedup, type DedupOptions } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock } from '../support/manual-clock.js';

const DAY = 86_400_000;

describe('the age of a key', () => {
  it('is what a UUIDv7 says, to the millisecond', () => {
    for (const msecs of [0, 1, 1_700_000_000_123, 2 ** 48 - 1]) expect(keyMadeAt(v7({ msecs }))).toBe(msecs);
    expect(keyMadeAt('017F22E2-79B0-7CC3-98C4-DC0C0C07398F')).toBe(Date.UTC(2022, 1, 22, 19, 22, 22));
  });

  it('is unknown of every other key', () => {
    const others = [v1(), v4(), v5('order', v5.URL), v6(), '017f22e2-79b0-7cc3-c8c4-dc0c0c07398f', '017f22e279b07cc398c4dc0c0c07398f', ` ${v7()}`, `${v7()}0`, 'order:42', ''];
    expect(others.map(keyMadeAt)).toEqual(others.map(() => undefined));
  });
});

describe('14: a server that refuses expired keys', () => {
  const serve = (options: Partial<DedupOptions> = {}) => {
    const clock = manualClock();
    const dedup: Dedup = createDedup({ store: memoryDedupStore({ clock }), clock, scope: () => 'acme', onExpired: 'refuse', ...options });
    let runs = 0;
    const send = async (key: string): Promise<[status: number, code: unknown]> => {
      const request = new Request('https://api.test/', { method: 'POST', headers: { 'idempotency-key': key }, body: '{}' });
      const response = await dedup.handle(request, () => Response.json({ runs: (runs += 1) }), { name: 'charge' });
      return [response.status, ((await response.json()) as { code?: unknown }).code];
    };
    return { clock, dedup, send, made: () => v7({ msecs: clock.now() }) };
  };

  it('refuses a UUIDv7 that is older than what it remembers, also when the row was purged', async () => {
    const { clock, dedup, send, made } = serve();
    const key = made();
    expect(await send(key)).toEqual([200, undefined]);
    await clock.advance(2 * DAY);
    expect(await send(key)).toEqual([412, 'idempotency_key_expired']);
    expect((await dedup.purge()).deleted).toBe(1);
    expect(await send(key)).toEqual([412, 'idempotency_key_expired']);
  });

  it('runs one that is young, whatever clock made it, and one that says nothing of its age', async () => {
    const { clock, send, made } = serve();
    const early = made();
    await clock.advance(DAY);
    expect(await send(early)).toEqual([200, undefined]);
    expect(await send(v7({ msecs: clock.now() + DAY }))).toEqual([200, undefined]);
    expect(await send(v5('order:42', v5.URL))).toEqual([200, undefined]);
  });

  it('does not look at the age where expired keys run again', async () => {
    const { clock, send, made } = serve({ onExpired: 'fresh' });
    const key = made();
    await clock.advance(30 * DAY);
    expect(await send(key)).toEqual([200, undefined]);
  });
});
