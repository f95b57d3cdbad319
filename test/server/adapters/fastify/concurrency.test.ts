import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { gate, post } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Fastify: at once', () => {
  it('28: runs one of 50 requests', async () => {
    const endpoint = await charges((_request, reply) => void setImmediate(() => void reply.code(201).send({ id: 1 })));
    const responses = await Promise.all(Array.from({ length: 50 }, () => post(endpoint.url)));
    for (const { status } of responses) expect([201, 409]).toContain(status);
    expect(endpoint.runs).toBe(1);
  });

  it('44: close of the app and idle wait for handlers that are under way', async () => {
    const { opened, open } = gate();
    const endpoint = await charges(async (_request, reply) => {
      await opened;
      reply.code(201);
      return {};
    });
    const first = post(endpoint.url, { headers: { connection: 'close' } });
    await expect.poll(() => endpoint.runs).toBe(1);
    let isIdle = false;
    const idle = Promise.all([endpoint.app.close(), endpoint.dedup.idle()]).then(() => (isIdle = true));
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(isIdle).toBe(false);
    open();
    expect((await first).status).toBe(201);
    await idle;
  });
});
