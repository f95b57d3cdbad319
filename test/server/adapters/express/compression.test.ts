import compression from 'compression';
import type { RequestHandler } from 'express';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { fileOf, postRaw } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Express: compression', () => {
  const text = JSON.stringify({ lines: Array.from({ length: 500 }, (_, line) => `line ${line}`) });
  const handler: RequestHandler = (_req, res) => void res.type('json').send(text);
  const gzip = { 'accept-encoding': 'gzip' };

  it('around it encodes each answer for its client: first, replayed, with and without gzip', async () => {
    const endpoint = await charges(handler, { before: [compression()] });
    const encodings: unknown[] = [];
    for (const headers of [gzip, gzip, {}]) {
      const { headers: got, body } = await postRaw(endpoint.url, headers);
      encodings.push(got['content-encoding']);
      expect((got['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()).toBe(text);
    }
    expect([encodings, endpoint.runs]).toEqual([['gzip', 'gzip', undefined], 1]);
  });

  it('inside stores plain bytes: a client that did not ask for gzip never gets it', async () => {
    const endpoint = await charges(handler, { inside: [compression()] });
    for (const headers of [gzip, {}, gzip]) {
      const { headers: got, body } = await postRaw(endpoint.url, headers);
      expect([got['content-encoding'], body.toString() === text]).toEqual([undefined, true]);
    }
    expect(endpoint.runs).toBe(1);
  });

  it('around it does not hold a stream up that waits for the response to drain', async () => {
    const endpoint = await charges((_req, res) => res.sendFile(fileOf('large.txt', 'x'.repeat(900_000))), { before: [compression()] });
    for (let sent = 0; sent < 2; sent += 1) expect(gunzipSync((await postRaw(endpoint.url, gzip)).body).length).toBe(900_000);
    expect(endpoint.runs).toBe(1);
  });
});
