import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * What becomes of the connection when the client sends a certain text. `before`: cut before the server hears of it;
 * `after`: cut when the server has done it and says so; `meanwhile`: cut the moment it is on its way.
 */
export type CutWhen = 'before' | 'after' | 'meanwhile';

/** Stands between clients and a PostgreSQL server, and cuts connections where it is told to. */
export interface TcpProxy {
  readonly port: number;
  /** Cuts the next connection on which the client sends `text`, and no other. Resolves when it is cut. */
  cut(text: string, when: CutWhen): Promise<void>;
  close(): Promise<void>;
}

interface Order {
  readonly text: string;
  readonly when: CutWhen;
  readonly done: () => void;
}

/** The end of PostgreSQL's answer to anything: ReadyForQuery, of 5 bytes and the state of the transaction. */
const isAnswered = (bytes: Buffer): boolean => bytes.length >= 6 && bytes.readUInt8(bytes.length - 6) === 0x5a && bytes.readUInt32BE(bytes.length - 5) === 5;

const couple = (client: Socket, server: Socket, take: (sent: Buffer) => Order | undefined): void => {
  let withheld: Order | undefined;
  const end = (order?: Order): void => {
    client.destroy();
    server.destroy();
    order?.done();
  };
  client.on('data', sent => {
    const order = take(sent);
    if (order?.when === 'before') return end(order);
    if (order?.when === 'after') withheld = order;
    server.write(sent);
    if (order?.when !== 'meanwhile') return undefined;
    server.end();
    client.destroy();
    return order.done();
  });
  server.on('data', answer => {
    if (!withheld) client.write(answer);
    else if (isAnswered(answer)) end(withheld);
  });
  for (const socket of [client, server]) socket.on('error', () => end());
  client.on('close', () => server.end());
  server.on('close', () => client.destroy());
};

export const startTcpProxy = async (target: { readonly host: string; readonly port: number }): Promise<TcpProxy> => {
  const orders: Order[] = [];
  const open = new Set<Socket>();
  const take = (sent: Buffer): Order | undefined => {
    const at = orders.findIndex(({ text }) => sent.includes(text));
    return at < 0 ? undefined : orders.splice(at, 1)[0];
  };
  const proxy = createServer(client => {
    const server = connect(target);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      open.add(socket);
      socket.on('close', () => open.delete(socket));
    }
    couple(client, server, take);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    port: (proxy.address() as AddressInfo).port,
    cut: (text, when) => new Promise(done => orders.push({ text, when, done })),
    close: () =>
      new Promise(resolve => {
        proxy.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
};
