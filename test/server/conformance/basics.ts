import { expect } from 'vitest';
import { bytesOf, codeOf, endpointOf, isReplay, type Conformance } from './stage.js';

const sameBytes = (body: BodyInit, type: string) => async (stage: Parameters<Conformance['run']>[0]): Promise<void> => {
  const endpoint = endpointOf(stage, () => new Response(body, { status: 201, headers: { 'content-type': type } }));
  const [first, second] = [await endpoint.send({ key: 'k' }), await endpoint.send({ key: 'k' })];
  expect(await bytesOf(second)).toEqual(await bytesOf(first));
  expect(second.headers.get('content-type')).toBe(type);
  expect([isReplay(second), endpoint.runs]).toEqual([true, 1]);
};

export const basics: readonly Conformance[] = [
  {
    name: '1: a request without a key is refused where one is required, and nothing runs',
    async run(stage) {
      const endpoint = endpointOf(stage);
      const response = await endpoint.send();
      expect(response.status).toBe(400);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(await response.json()).toMatchObject({ code: 'idempotency_key_missing', title: 'Idempotency-Key is missing', status: 400 });
      expect(endpoint.runs).toBe(0);
    },
  },
  {
    name: '1: a request without a key runs unprotected where none is required, and says so',
    async run(stage) {
      const endpoint = endpointOf(stage, undefined, { required: false });
      const response = await endpoint.send();
      expect([response.status, response.headers.get('idempotency-status'), endpoint.runs]).toEqual([201, 'none', 1]);
    },
  },
  {
    name: '2, 3: a repeat gets the same bytes with a marker, which the first answer does not carry',
    async run(stage) {
      const endpoint = endpointOf(stage);
      const first = await endpoint.send({ key: 'k' });
      const second = await endpoint.send({ key: 'k' });
      expect([first.status, second.status]).toEqual([201, 201]);
      expect([first.headers.get('idempotency-status'), second.headers.get('idempotency-status')]).toEqual(['stored', 'replayed']);
      expect([isReplay(first), isReplay(second)]).toEqual([false, true]);
      expect(await bytesOf(second)).toEqual(await bytesOf(first));
      expect(endpoint.runs).toBe(1);
    },
  },
  {
    name: '4, 5, C86: a replay keeps Location, ETag, Link and media type, and nothing of one connection, moment or caller',
    async run(stage) {
      const headers: [string, string][] = [
        ['location', '/charges/1'], ['etag', '"v1"'], ['link', '</a>; rel=a'], ['link', '</b>; rel=b'], ['content-type', 'text/csv'], ['x-custom', 'kept'],
        ['date', 'Tue, 01 Jan 2030 00:00:00 GMT'], ['connection', 'x-hop'], ['x-hop', '1'], ['x-request-id', 'r-1'], ['x-ratelimit-remaining', '3'],
        ['access-control-allow-origin', 'https://a.example'], ['www-authenticate', 'Basic'],
      ];
      const endpoint = endpointOf(stage, () => new Response('id\n1\n', { status: 201, headers }));
      await endpoint.send({ key: 'k' });
      const replay = await endpoint.send({ key: 'k' });
      expect(Object.fromEntries(replay.headers)).toEqual({
        location: '/charges/1', etag: '"v1"', link: '</a>; rel=a, </b>; rel=b', 'content-type': 'text/csv', 'x-custom': 'kept',
        'idempotency-status': 'replayed', 'idempotent-replayed': 'true',
      });
    },
  },
  {
    name: '7, C88: 204, 205 and 304 are replayed without a body and without a failure',
    async run(stage) {
      for (const status of [204, 205, 304]) {
        const endpoint = endpointOf(stage, () => new Response(null, { status }));
        await endpoint.send({ key: `k${status}` });
        const replay = await endpoint.send({ key: `k${status}` });
        expect([replay.status, replay.body, isReplay(replay), endpoint.runs]).toEqual([status, null, true, 1]);
      }
    },
  },
  {
    name: '8: 303 with its Location is replayed',
    async run(stage) {
      const endpoint = endpointOf(stage, () => new Response(null, { status: 303, headers: { location: '/charges/1' } }));
      await endpoint.send({ key: 'k' });
      const replay = await endpoint.send({ key: 'k' });
      expect([replay.status, replay.headers.get('location'), endpoint.runs]).toEqual([303, '/charges/1', 1]);
    },
  },
  { name: '9: binary bytes arrive intact, first and replayed', run: sameBytes(new Uint8Array([0xff, 0xfe, 0x00, 0x80]), 'application/octet-stream') },
  {
    name: '10, C87: text that no JSON column keeps is replayed byte by byte',
    run: sameBytes('\uFEFF{"z":1, "a":1.0,"a":2,\r\n "big":12345678901234567890, "nul":"x\0y"}', 'application/json'),
  },
  { name: 'C87: an empty body is replayed as an empty body', run: sameBytes('', 'text/plain') },
  { name: 'C87: text that is no JSON is replayed as it is', run: sameBytes('half a {', 'application/json') },
  {
    name: '11: a method that needs no key runs every time, stores nothing, and says that the key was ignored',
    async run(stage) {
      const endpoint = endpointOf(stage, () => new Response('ok'));
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'GET']) {
        const response = await endpoint.send({ key: 'k', method, body: null });
        expect([response.status, response.headers.get('idempotency-status'), isReplay(response)]).toEqual([200, 'ignored', false]);
      }
      expect(endpoint.runs).toBe(4);
      expect((await endpoint.send({ key: 'k', body: null })).headers.get('idempotency-status')).toBe('stored');
    },
  },
  {
    name: '57: every refusal has a code and a type of its own',
    async run(stage) {
      const endpoint = endpointOf(stage);
      await endpoint.send({ key: 'k' });
      const refusals = await Promise.all([endpoint.send(), endpoint.send({ key: '""' }), endpoint.send({ key: 'k', body: '{}' }), endpoint.send({ key: 'k2', tenant: '' })]);
      const bodies = (await Promise.all(refusals.map(response => response.json()))) as { code: string; type: string; status: number }[];
      expect(bodies.map(({ code, status }) => [status, code])).toEqual([
        [400, 'idempotency_key_missing'], [400, 'idempotency_key_invalid'], [422, 'idempotency_key_reused'], [400, 'idempotency_scope_missing'],
      ]);
      for (const { code, type } of bodies) expect(type).toBe(`urn:samekey:problem:${code}`);
    },
  },
  {
    name: '58: to a page of another origin the markers are exposed',
    async run(stage) {
      const endpoint = endpointOf(stage);
      // Browsers do not let a script set Origin on a Request; the server sees it all the same.
      const cross = (request: Request): Request => Object.defineProperty(request, 'headers', { value: new Headers([...request.headers, ['origin', 'https://page.example']]) });
      const { requestOf } = await import('./stage.js');
      for (const key of ['k', 'k', undefined]) {
        const request = cross(requestOf(key === undefined ? {} : { key }));
        const response = await endpoint.dedup.handle(request, () => new Response('ok'), { name: 'charge' });
        expect(response.headers.get('access-control-expose-headers')).toContain('Idempotent-Replayed');
      }
      expect((await endpoint.send({ key: 'k3' })).headers.has('access-control-expose-headers')).toBe(false);
    },
  },
  {
    name: 'a body larger than the endpoint accepts is refused and leaves no record',
    async run(stage) {
      const endpoint = endpointOf(stage, undefined, { maxRequestBytes: 10 });
      const large = await endpoint.send({ key: 'k', body: '01234567890', type: 'text/plain' });
      expect([large.status, await codeOf(large), endpoint.runs]).toEqual([413, 'idempotency_request_too_large', 0]);
      expect((await endpoint.send({ key: 'k', body: '0123456789', type: 'text/plain' })).status).toBe(201);
    },
  },
];
