import type { RequestHandler } from 'express';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { bytesOf, fileOf, gate, noise, post, replayed, twice } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Express: what a handler writes to res', () => {
  const ways: Record<string, RequestHandler> = {
    'res.json': (_req, res) => void res.status(201).location('/charges/1').json({ id: 1 }),
    'res.send of text': (_req, res) => void res.type('text/csv').send('id\n1\n'),
    'res.send of bytes': (_req, res) => void res.send(Buffer.from([0xff, 0xfe, 0x00, 0x80])),
    'res.end': (_req, res) => void res.end('done'),
    'res.end without a body': (_req, res) => void res.end(),
    'res.write and res.end': (_req, res) => {
      res.writeHead(202, { 'x-custom': 'kept' });
      res.write('one ');
      res.write('74776f20', 'hex');
      res.end('three');
    },
    'writeHead with a flat list': (_req, res) => void res.set('link', '</old>').writeHead(201, 'Made', ['Link', '</a>; rel=a', 'Link', '</b>; rel=b']).end('made'),
    'res.sendFile': (_req, res) => res.sendFile(fileOf('small.bin', noise(200_000))),
    'res.redirect': (_req, res) => res.redirect(303, '/charges/1'),
    'res.sendStatus': (_req, res) => void res.sendStatus(202),
    'a piped stream': (_req, res) => void Readable.from([noise(100_000), noise(50_000)]).pipe(res.type('bin')),
    'a pipeline': async (_req, res) => pipeline(Readable.from([noise(100_000)]), res.type('bin')),
    'later, from a callback': (_req, res) => void setImmediate(() => res.json({ late: true })),
  };

  it.each(Object.entries(ways))('C90: %s is stored, and replayed byte by byte', async (_name, handler) => {
    const endpoint = await charges(handler);
    const fetchOnce = (): Promise<Response> => post(endpoint.url, { redirect: 'manual' });
    const first = await fetchOnce();
    const body = await bytesOf(first);
    const second = await fetchOnce();
    expect([second.status, replayed(first), replayed(second), endpoint.runs]).toEqual([first.status, false, true, 1]);
    expect(first.headers.get('idempotency-status')).toBe('stored');
    expect(Buffer.compare(await bytesOf(second), body)).toBe(0);
    for (const name of ['content-type', 'location', 'etag', 'link', 'x-custom']) expect(second.headers.get(name)).toBe(first.headers.get(name));
  });

  it('C90: the sizes are what was written', async () => {
    const sizes = Object.entries({ 'res.sendFile': 200_000, 'a piped stream': 150_000, 'a pipeline': 100_000 });
    for (const [name, size] of sizes) {
      const endpoint = await charges(ways[name] as RequestHandler);
      expect((await bytesOf(await post(endpoint.url))).length).toBe(size);
    }
  });

  it('C88: 204 and 304 go out and are replayed without a body', async () => {
    for (const status of [204, 304]) {
      const [first, second] = await twice(await charges((_req, res) => void res.status(status).end()));
      expect([first.status, await first.text(), second.status, await second.text(), replayed(second)]).toEqual([status, '', status, '', true]);
    }
  });

  it('5, C86: the first answer has all its cookies, a replay has none of them but those around it', async () => {
    const handler: RequestHandler = (_req, res) => void res.cookie('a', '1').cookie('b', '2').json({});
    const session: RequestHandler = (_req, res, next) => next(void res.cookie('session', 's'));
    const [first, second] = await twice(await charges(handler, { before: [session] }));
    expect(first.headers.getSetCookie().map(cookie => cookie.split(';')[0])).toEqual(['session=s', 'a=1', 'b=2']);
    expect(second.headers.getSetCookie().map(cookie => cookie.split(';')[0])).toEqual(['session=s']);
  });

  it('writeHead with a flat list replaces headers, and keeps each of its own', async () => {
    const [first, second] = await twice(await charges(ways['writeHead with a flat list'] as RequestHandler));
    expect([first.headers.get('link'), second.headers.get('link')]).toEqual(['</a>; rel=a, </b>; rel=b', '</a>; rel=a, </b>; rel=b']);
    expect(first.statusText).toBe('Made');
  });

  it('6: an answer that is written at once has a length, as node:http gives it, and its replay, too', async () => {
    const [first, second] = await twice(await charges((_req, res) => void res.end('done')));
    expect([first.headers.get('content-length'), second.headers.get('content-length')]).toEqual(['4', '4']);
  });

  it('a writer of what a 204 does not send comes to its end', async () => {
    const ended = gate();
    const endpoint = await charges((_req, res) => {
      res.status(204).write(noise(200_000));
      res.end(() => ended.open());
    });
    expect((await post(endpoint.url)).status).toBe(204);
    await ended.opened;
  });

  it('lists that are set around the handler and by it are both whole', async () => {
    const around: RequestHandler = (_req, res, next) => {
      res.set('access-control-expose-headers', 'X-Total');
      for (const link of ['</a>', '</b>']) res.appendHeader('link', link);
      next();
    };
    const endpoint = await charges((_req, res) => void res.appendHeader('link', '</c>').json({}), { before: [around] });
    for (const method of ['POST', 'POST', 'GET']) {
      const { headers } = await post(endpoint.url, { method, headers: { origin: 'https://page.example' }, ...(method === 'GET' && { body: null }) });
      expect([headers.get('link'), headers.get('access-control-expose-headers')]).toEqual(['</a>, </b>, </c>', expect.stringMatching(/^X-Total, .*Idempotent-Replayed/)]);
    }
  });

  it('what stands around the handler sets its headers on every answer anew', async () => {
    let seen = 0;
    const around: RequestHandler = (_req, res, next) => next(void res.set({ 'x-seen': String((seen += 1)), vary: 'Origin' }));
    const [first, second] = await twice(await charges((_req, res) => void res.vary('Accept').json({}), { before: [around] }));
    expect([first.headers.get('x-seen'), second.headers.get('x-seen')]).toEqual(['1', '2']);
    expect([first.headers.get('vary'), second.headers.get('vary')]).toEqual(['Origin, Accept', 'Origin, Accept']);
  });

  it('a second answer meets the error that Express gives without us', async () => {
    const codes: unknown[] = [];
    const looks: unknown[] = [];
    const handler: RequestHandler = (_req, res) => {
      looks.push(res.headersSent, res.writableEnded);
      res.json({ first: true });
      looks.push(res.headersSent, res.writableEnded);
      try {
        res.json({ second: true });
      } catch (error) {
        codes.push((error as { code: unknown }).code);
      }
    };
    const [first] = await twice(await charges(handler));
    expect([codes, await first.json()]).toEqual([['ERR_HTTP_HEADERS_SENT'], { first: true }]);
    expect(looks).toEqual([false, false, true, true]);
  });

  it('listeners of the handler hear finish and close once, those around it when the client has the answer', async () => {
    const heard: string[] = [];
    const listen = (who: string): RequestHandler => (_req, res, next) => {
      res.on('finish', () => heard.push(`${who} finish`)).once('close', () => heard.push(`${who} close`));
      next();
    };
    const endpoint = await charges((_req, res) => void res.end('done'), { before: [listen('outer')], inside: [listen('inner')] });
    await (await post(endpoint.url)).text();
    await expect.poll(() => heard).toEqual(['inner finish', 'inner close', 'outer finish', 'outer close']);
  });
});
