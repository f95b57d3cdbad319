import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { gate, post, replayed } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Express: at once', () => {
  it('28: runs one of 50 requests', async () => {
    const endpoint = await charges((_req, res) => void setImmediate(() => res.status(201).json({ id: 1 })));
    const responses = await Promise.all(Array.from({ length: 50 }, () => post(endpoint.url)));
    for (const { status } of responses) expect([201, 409]).toContain(status);
    expect(endpoint.runs).toBe(1);
  });

  it('44: idle waits for handlers that are under way', async () => {
    const { opened, open } = gate();
    const endpoint = await charges(async (_req, res) => {
      await opened;
      res.status(201).json({});
    });
    const first = post(endpoint.url);
    await expect.poll(() => endpoint.runs).toBe(1);
    let isIdle = false;
    const idle = endpoint.dedup.idle().then(() => (isIdle = true));
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(isIdle).toBe(false);
    open();
    await idle;
    expect((await first).status).toBe(201);
  });

  it('C91: a handler that is slow after its effect keeps its key', async () => {
    const { opened, open } = gate();
    const effects: number[] = [];
    const endpoint = await charges(async (_req, res) => {
      effects.push(1);
      await opened;
      res.status(201).json({});
    }, { options: { lease: 60 } });
    const first = post(endpoint.url);
    await expect.poll(() => effects.length).toBe(1);
    await new Promise(resolve => setTimeout(resolve, 200));
    expect([(await post(endpoint.url)).status, effects.length]).toEqual([409, 1]);
    open();
    expect([(await first).status, replayed(await post(endpoint.url))]).toEqual([201, true]);
  });
});
