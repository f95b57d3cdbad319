import { expect } from 'vitest';
import { bytesOf, codeOf, DAY, endpointOf, gate, isReplay, passUntil, type Conformance } from './stage.js';

export const concurrency: readonly Conformance[] = [
  {
    name: '28: of 50 identical requests at once exactly one runs; the others are told so or get its answer',
    async run(stage) {
      const endpoint = endpointOf(stage);
      const responses = await Promise.all(Array.from({ length: 50 }, () => endpoint.send({ key: 'k' })));
      expect(endpoint.runs).toBe(1);
      expect(responses.filter(response => response.headers.get('idempotency-status') === 'stored')).toHaveLength(1);
      for (const response of responses) expect([201, 409]).toContain(response.status);
      expect(isReplay(await endpoint.send({ key: 'k' }))).toBe(true);
    },
  },
  {
    name: '29: a 409 says when to come back, and leaves no trace',
    async run(stage) {
      const { opened, open } = gate();
      const endpoint = endpointOf(stage, async () => opened.then(() => new Response('done')));
      const first = endpoint.send({ key: 'k' });
      await expect.poll(() => endpoint.runs).toBe(1);
      const conflict = await endpoint.send({ key: 'k' });
      expect(conflict.headers.get('retry-after')).toMatch(/^[1-5]$/);
      expect(conflict.headers.get('content-type')).toBe('application/problem+json');
      expect(await conflict.json()).toMatchObject({
        code: 'idempotency_in_progress', retryable: true, title: 'A request is outstanding for this Idempotency-Key',
      });
      open();
      await first;
      expect((await endpoint.send({ key: 'k' })).status).toBe(200);
    },
  },
  {
    name: '30: a duplicate that comes after the end, before the first answer was read, gets the answer',
    async run(stage) {
      const endpoint = endpointOf(stage);
      const first = await endpoint.send({ key: 'k' });
      const second = await endpoint.send({ key: 'k' });
      expect(await bytesOf(second)).toEqual(await bytesOf(first));
    },
  },
  {
    name: '31, C72: an expired key that nobody purged runs once under 20 requests at once, whatever the body',
    async run(stage) {
      const { drift = 0 } = stage;
      const endpoint = endpointOf(stage);
      await endpoint.send({ key: 'k' });
      await stage.clock.advance(DAY - 1 - drift);
      expect(isReplay(await endpoint.send({ key: 'k' }))).toBe(true);
      await stage.clock.advance(2 + drift);
      const responses = await Promise.all(Array.from({ length: 20 }, () => endpoint.send({ key: 'k', body: '{"amount":1}' })));
      expect(endpoint.runs).toBe(2);
      expect(responses.filter(({ status }) => status === 422)).toEqual([]);
    },
  },
  {
    name: '32: different keys never wait for each other',
    async run(stage) {
      const { opened, open } = gate();
      const endpoint = endpointOf(stage, async (_request, { key }) => (key === 'slow' ? opened.then(() => new Response('late')) : new Response('now')));
      const slow = endpoint.send({ key: 'slow' });
      await expect.poll(() => endpoint.runs).toBe(1);
      expect(await (await endpoint.send({ key: 'quick' })).text()).toBe('now');
      open();
      expect(await (await slow).text()).toBe('late');
    },
  },
  {
    name: '33: a duplicate that may wait gets the answer of the run, or 409 when its time is over',
    async run(stage) {
      const { opened, open } = gate();
      const endpoint = endpointOf(stage, async () => opened.then(() => new Response('done')), { wait: 1_000 });
      const first = endpoint.send({ key: 'k' });
      await expect.poll(() => endpoint.runs).toBe(1);
      const impatient = endpoint.send({ key: 'k' });
      expect((await passUntil(stage.clock, impatient)).status).toBe(409);
      const patient = endpoint.send({ key: 'k' });
      // One sleeper renews the lease, the other waits for the answer.
      await expect.poll(() => stage.clock.sleeping).toBe(2);
      open();
      await first;
      await passUntil(stage.clock, patient);
      expect([isReplay(await patient), endpoint.runs]).toEqual([true, 1]);
    },
  },
  {
    name: '54: past its window a key can be refused instead of running again',
    async run(stage) {
      const endpoint = endpointOf(stage, undefined, { onExpired: 'refuse' });
      await endpoint.send({ key: 'k' });
      await stage.clock.advance(DAY + 1);
      const response = await endpoint.send({ key: 'k' });
      expect(response.status).toBe(412);
      expect(await response.json()).toMatchObject({ code: 'idempotency_key_expired', original_status: 201, safe_new_key: false });
      expect(endpoint.runs).toBe(1);
    },
  },
  {
    name: '54: a purge removes neither a live run nor its protection, and the table does not grow',
    async run(stage) {
      const { opened, open } = gate();
      const endpoint = endpointOf(stage, async (_request, { key }) => (key === 'live' ? opened.then(() => new Response('done')) : new Response('ok')));
      for (let day = 0; day < 3; day += 1) {
        for (let index = 0; index < 10; index += 1) await endpoint.send({ key: `${day}-${index}` });
        await stage.clock.advance(DAY + 1);
        expect((await endpoint.dedup.purge()).deleted).toBe(10);
      }
      const live = endpoint.send({ key: 'live' });
      await expect.poll(() => endpoint.runs).toBe(31);
      expect((await endpoint.dedup.purge()).deleted).toBe(0);
      expect(await codeOf(await endpoint.send({ key: 'live' }))).toBe('idempotency_in_progress');
      open();
      expect((await live).status).toBe(200);
    },
  },
  {
    name: 'an answer that expires before its key is not given, and the request is not run again',
    async run(stage) {
      const endpoint = endpointOf(stage, undefined, { retention: 1_000, keyRetention: DAY });
      await endpoint.send({ key: 'k' });
      await stage.clock.advance(1_001);
      const response = await endpoint.send({ key: 'k' });
      expect(await response.json()).toMatchObject({ code: 'idempotency_result_expired', original_status: 201, safe_new_key: false });
      expect([response.status, endpoint.runs]).toEqual([409, 1]);
    },
  },
];
