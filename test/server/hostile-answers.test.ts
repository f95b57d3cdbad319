import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createDedup } from '../../src/server/index.js';
import type { Handler } from '../../src/server/index.js';
import { toNodeListener } from '../../src/server/adapters/node.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';

const request = (key?: string): Request => new Request('http://shop.test/charges', { method: 'POST', body: '{}', headers: key === undefined ? {} : { 'idempotency-key': key } });

const broken = (): Response => {
  let pulls = 0;
  const body = new ReadableStream({ pull: controller => (pulls++ === 0 ? controller.enqueue(new Uint8Array(3)) : controller.error(new Error('half way'))) });
  return new Response(body, { status: 201 });
};

const usedUp = async (): Promise<Response> => {
  const response = Response.json({ id: 1 }, { status: 201 });
  await response.text();
  return response;
};

describe('an answer that cannot be read is the end of its run all the same (dedup.md row 15)', () => {
  it.each<[string, () => Response | Promise<Response>]>([['its stream breaks off', broken], ['its body was read before', usedUp]])('%s: the handler runs once, and repeats learn its status', async (_, answer) => {
    let effects = 0;
    const handler: Handler<Response> = () => {
      effects += 1;
      return answer();
    };
    const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'acct_1' });
    expect((await dedup.handle(request('k'), handler, { name: 'charge' })).status).toBe(201);
    const repeat = await dedup.handle(request('k'), handler, { name: 'charge' });
    expect(await repeat.json()).toMatchObject({ code: 'idempotency_result_unavailable', original_status: 201, safe_new_key: false });
    expect(effects).toBe(1);
  });
});

it('a network error of an unprotected handler passes through', async () => {
  const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'acct_1', required: false });
  expect((await dedup.handle(request(), () => Response.error(), { name: 'charge' })).type).toBe('error');
});

it('a path that begins with two slashes stays a path, and names no other host', async () => {
  const seen: string[] = [];
  const server = createServer(toNodeListener(({ url }) => (seen.push(url), new Response())));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const sent = get({ host: '127.0.0.1', port, path: '//evil.test/charges?a=1', headers: { host: 'shop.test' } });
  await once(sent, 'response');
  sent.destroy();
  server.close();
  expect(seen).toEqual(['http://shop.test//evil.test/charges?a=1']);
});
