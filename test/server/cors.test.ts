import { describe, expect, it } from 'vitest';
import { createDedup, withCors } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';

const PAGE = 'https://page.example';

const charges = (origins: readonly string[] | '*') => {
  const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'acme' });
  return withCors(request => dedup.handle(request, () => new Response('ok', { headers: { vary: 'Accept' } }), { name: 'charge' }), { origins, headers: ['Authorization'] });
};

const requestFrom = (origin: string, method: string, headers: Record<string, string>): Request =>
  new Request('https://api.example/charges', { method, headers: { origin, ...headers } });

describe('withCors', () => {
  it('58: answers a preflight, and allows the key header in it', async () => {
    const response = await charges([PAGE])(requestFrom(PAGE, 'OPTIONS', { 'access-control-request-method': 'POST', 'access-control-request-headers': 'idempotency-key' }));
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([204, PAGE]);
    expect(response.headers.get('access-control-allow-headers')).toBe('Idempotency-Key, Content-Type, If-Match, If-None-Match, Authorization');
    expect(response.headers.get('access-control-allow-methods')).toContain('POST');
  });

  it('58: gives every answer its permission, and exposes what a client must read: first, replay, refusal', async () => {
    const handler = charges('*');
    const answers = [
      await handler(requestFrom(PAGE, 'POST', { 'idempotency-key': 'k' })),
      await handler(requestFrom('https://other.example', 'POST', { 'idempotency-key': 'k' })),
      await handler(requestFrom(PAGE, 'POST', {})),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400]);
    expect(answers.map(({ headers }) => headers.get('access-control-allow-origin'))).toEqual([PAGE, 'https://other.example', PAGE]);
    expect(answers[1]?.headers.get('idempotent-replayed')).toBe('true');
    for (const { headers } of answers) expect(headers.get('access-control-expose-headers')).toContain('Idempotency-Status');
    expect(answers[0]?.headers.get('vary')).toBe('Accept, Origin');
  });

  it('lets pages read the ETag of what they get, beside what the engine exposes', async () => {
    const plain = withCors(() => new Response(null, { headers: { etag: '"7"' } }), { origins: [PAGE] });
    for (const handler of [plain, charges([PAGE])]) {
      const { headers } = await handler(requestFrom(PAGE, 'POST', { 'idempotency-key': 'k' }));
      expect(headers.get('access-control-expose-headers')?.split(', ')).toContain('ETag');
    }
  });

  it('gives no permission to other origins', async () => {
    const response = await charges([PAGE])(requestFrom('https://evil.example', 'POST', { 'idempotency-key': 'k' }));
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, null]);
  });
});
