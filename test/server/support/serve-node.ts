import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { toNodeListener } from '../../../src/server/adapters/node.js';
import type { Door, Serve } from './targets.js';

/** Written by hand, because node:http sends no header that it finds wrong. */
const sendLines: NonNullable<Door['sendLines']> = async (request, lines) => {
  const { host, hostname, port, pathname, search } = new URL(request.url);
  const body = Buffer.from(await request.arrayBuffer());
  const headers = [['host', host], ['connection', 'close'], ['content-length', String(body.length)], ...request.headers, ...lines];
  const head = [`${request.method} ${pathname}${search} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n');
  const socket = connect(Number(port), hostname);
  socket.end(Buffer.concat([Buffer.from(head, 'latin1'), body]));
  return Number(/^HTTP\/1\.1 (\d+)/.exec(await text(socket))?.[1]);
};

/** A listener, or a server that has one, on a port of its own. */
export const listen = async (listener: RequestListener | Server): Promise<Door> => {
  const server = (typeof listener === 'function' ? createServer(listener) : listener).listen(0, '127.0.0.1');
  await new Promise(resolve => server.once('listening', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fetch: request => fetch(request),
    sendLines,
    async close() {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
};

/** Real sockets, through the adapter for node:http. */
export const overNode: Serve = ({ handle }) => listen(toNodeListener(handle, { onError: () => {} }));
