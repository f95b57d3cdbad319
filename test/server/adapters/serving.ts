import { createServer, request as httpRequest, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach } from 'vitest';
import { createDedup, type Dedup, type DedupOptions } from '../../../src/server/index.js';
import { memoryDedupStore } from '../../../src/server/stores/memory.js';

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
  }
});

/** Serves on a free port until the test ends, and returns the origin. */
export const serve = async (listener: RequestListener | Server): Promise<string> => {
  const server = (typeof listener === 'function' ? createServer(listener) : listener).listen(0, '127.0.0.1');
  servers.push(server);
  if (!server.listening) await new Promise(resolve => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/** A dedup on memory for one tenant. */
export const dedupOf = (options: Partial<DedupOptions> = {}): Dedup =>
  createDedup({ store: memoryDedupStore(), scope: () => 'acme', on: { failed: () => {} }, ...options });

export interface Posted extends RequestInit {
  readonly key?: string | undefined;
  readonly type?: string;
}

/** Posts a charge, or what else is given. */
export const post = (url: string, { key = 'k', type = 'application/json', headers = {}, ...init }: Posted = {}): Promise<Response> =>
  fetch(url, {
    method: 'POST', body: '{"amount":4200}', ...init,
    headers: { ...(init.body === null ? {} : { 'content-type': type }), ...(key !== '' && { 'idempotency-key': key }), ...(headers as Record<string, string>) },
  });

export const replayed = (response: Response): boolean => response.headers.get('idempotent-replayed') === 'true';

export const codeOf = async (response: Response): Promise<string> => ((await response.json()) as { code: string }).code;

/** What came on the wire, not decoded: fetch would undo its encoding. */
export interface Wire {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export const postRaw = (url: string, headers: Record<string, string>, body = '{"amount":4200}'): Promise<Wire> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method: 'POST', headers: { 'content-type': 'application/json', 'idempotency-key': 'k', ...headers } }, response => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }));
    });
    sent.on('error', reject).end(body);
  });

/** The first answer, read, and its repeat. */
export const twice = async ({ url }: { readonly url: string }): Promise<[Response, Response]> => {
  const first = await post(url);
  await first.clone().bytes();
  return [first, await post(url)];
};

export const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

/** Bytes that are no text. */
export const noise = (length: number): Uint8Array<ArrayBuffer> => Uint8Array.from({ length }, (_, index) => (index * 31) % 251);

let folder: string | undefined;

afterAll(() => {
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** A file that lives as long as the tests of its module. */
export const fileOf = (name: string, content: Uint8Array | string): string => {
  folder ??= mkdtempSync(join(tmpdir(), 'samekey-adapter-'));
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

/** A promise and what settles it. */
export const gate = <T = void>(): { readonly opened: Promise<T>; readonly open: (value: T) => void } => {
  let open!: (value: T) => void;
  const opened = new Promise<T>(resolve => (open = resolve));
  return { opened, open };
};
