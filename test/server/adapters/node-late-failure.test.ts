import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { toNodeListener } from '../../../src/server/adapters/node.js';

it('a body that fails when its client has gone already does not end the server', async () => {
  const failed = new ReadableStream({ start: controller => controller.error(new Error('The source broke.')) });
  let calls = 0;
  let arrived = (): void => {};
  const working = new Promise<void>(resolve => (arrived = resolve));
  const handler = async (request: Request): Promise<Response> => {
    calls += 1;
    if (calls > 1) return new Response('still here');
    arrived();
    if (!request.signal.aborted) await new Promise(resolve => request.signal.addEventListener('abort', resolve, { once: true }));
    return new Response(failed);
  };
  const server = createServer(toNodeListener(handler, { onError: () => {} })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.on('uncaughtException', note);

  const request = get(url).on('error', () => {});
  await working;
  request.destroy();
  await new Promise(resolve => setTimeout(resolve, 50));
  expect(await (await fetch(url)).text()).toBe('still here');
  expect(uncaught).toEqual([]);

  process.off('uncaughtException', note);
  server.close();
});
