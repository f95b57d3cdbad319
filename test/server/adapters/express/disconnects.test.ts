import express, { type RequestHandler } from 'express';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { memoryDedupStore } from '../../../../src/server/stores/memory.js';
import type { DedupStore } from '../../../../src/server/index.js';
import { bePatient } from '../../../support/patience.js';
import { bytesOf, fileOf, gate, noise, post, replayed } from '../serving.js';
import { charges, type Endpoint } from './charges.js';

bePatient();

/** For the server to hear that a connection is gone. */
const aMoment = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 20));

describe('Express: a client that leaves', () => {
  const leaving = (endpoint: Endpoint): { leave: () => void; left: Promise<unknown> } => {
    const client = new AbortController();
    const left = post(endpoint.url, { signal: client.signal }).catch((error: unknown) => error);
    return { leave: () => client.abort(), left };
  };

  const slow: Record<string, (opened: Promise<void>) => RequestHandler> = {
    'res.json': opened => async (_req, res) => {
      await opened;
      res.status(201).json({ open: [res.destroyed, res.writableEnded, res.socket?.destroyed] });
    },
    'writes in pieces': opened => async (_req, res) => {
      res.status(201).type('text').write('one ');
      await opened;
      res.write('two ');
      res.end('three');
    },
    'res.sendFile': opened => async (_req, res) => {
      await opened;
      res.status(201).sendFile(fileOf('slow.bin', noise(300_000)));
    },
    'a pipeline': opened => async (_req, res) => {
      await opened;
      await pipeline(Readable.from([noise(100_000), noise(100_000)]), res.status(201));
    },
    'a pipeline that is under way': opened => async (_req, res) => {
      await pipeline(Readable.from((async function* () {
        yield noise(100_000);
        await opened;
        yield noise(100_000);
      })()), res.status(201));
    },
  };

  it.each(Object.entries(slow))('43, C99: during %s, does not stop it; its retry meets the run, then the answer', async (_name, handler) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note).on('uncaughtException', note);
    const { opened, open } = gate();
    const quick = handler(Promise.resolve());
    const expected = await bytesOf(await post((await charges(quick)).url));
    const endpoint = await charges(handler(opened));
    const { leave, left } = leaving(endpoint);
    await expect.poll(() => endpoint.runs).toBe(1);
    leave();
    await left;
    expect((await post(endpoint.url)).status).toBe(409);
    await aMoment();
    open();
    await expect.poll(async () => (await post(endpoint.url)).status).toBe(201);
    const replay = await post(endpoint.url);
    expect([replayed(replay), endpoint.runs]).toEqual([true, 1]);
    expect(Buffer.compare(await bytesOf(replay), expected)).toBe(0);
    process.off('unhandledRejection', note).off('uncaughtException', note);
    expect(unhandled).toEqual([]);
  });

  it('43: before the body parser has run, does not make a bad request of it', async () => {
    const claimed = gate();
    const { opened, open } = gate();
    const memory = memoryDedupStore();
    const store: DedupStore = { ...memory, claim: async claim => (claimed.open(), await opened, memory.claim(claim)) };
    const endpoint = await charges((req, res) => void res.status(201).json(req.body), { inside: [express.json()], options: { store } });
    const { leave, left } = leaving(endpoint);
    await claimed.opened;
    leave();
    await left;
    await aMoment();
    open();
    await expect.poll(() => endpoint.runs).toBe(1);
    const replay = await post(endpoint.url);
    expect([replay.status, await replay.json(), replayed(replay)]).toEqual([201, { amount: 4200 }, true]);
  });

  it('those around the handler hear that the client has left, when the answer is recorded and before they see it', async () => {
    const { opened, open } = gate();
    const heard: string[] = [];
    const outer: RequestHandler = (req, res, next) => {
      const { end } = res;
      res.end = (...args: never[]) => (heard.push('end'), Reflect.apply(end, res, args) as typeof res);
      res.on('close', () => heard.push(`close, ${res.destroyed ? 'destroyed' : 'open'}`));
      req.on('aborted', () => heard.push('aborted'));
      next();
    };
    const endpoint = await charges(async (_req, res) => {
      await opened;
      heard.push('answer');
      res.json({});
    }, { before: [outer] });
    const { leave, left } = leaving(endpoint);
    await expect.poll(() => endpoint.runs).toBe(1);
    leave();
    await left;
    await aMoment();
    open();
    await expect.poll(() => heard).toContain('end');
    expect(heard).toEqual(['answer', 'close, destroyed', 'aborted', 'end']);
    expect(replayed(await post(endpoint.url))).toBe(true);
  });

  it('43: does not stop a file where a log around it has asked on-finished', async () => {
    // Which is what morgan does, and comes with Express.
    const onFinished = createRequire(createRequire(import.meta.url).resolve('express'))('on-finished') as (res: unknown, done: () => void) => void;
    const { opened, open } = gate();
    const log: RequestHandler = (_req, res, next) => {
      onFinished(res, () => {});
      next();
    };
    const endpoint = await charges((_req, res) => {
      const pieces = async function* (): AsyncGenerator<Uint8Array> {
        yield noise(100_000);
        await opened;
        yield noise(100_000);
      };
      const source = Readable.from(pieces());
      // As sendFile lets go of its file.
      onFinished(res, () => source.destroy());
      source.pipe(res.status(201));
    }, { before: [log] });
    const { leave, left } = leaving(endpoint);
    await expect.poll(() => endpoint.runs).toBe(1);
    leave();
    await left;
    await aMoment();
    open();
    await expect.poll(async () => (await post(endpoint.url)).status).toBe(201);
    expect([(await bytesOf(await post(endpoint.url))).length, endpoint.runs]).toEqual([200_000, 1]);
  });
});
