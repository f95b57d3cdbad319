import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { extname, join, normalize } from 'node:path';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json',
};

/** Serves a file below `folder`; the folder's index for `/`. */
export const servePage = async (folder: string, pathname: string, response: ServerResponse): Promise<void> => {
  const file = normalize(join(folder, pathname === '/' ? 'index.html' : pathname));
  // `normalize` has resolved every `..`, so what is still below the folder is safe to read.
  const bytes = file.startsWith(normalize(folder)) ? await readFile(file).catch(() => undefined) : undefined;
  if (!bytes) return void response.writeHead(404).end();
  response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'cache-control': 'no-store' }).end(bytes);
};
