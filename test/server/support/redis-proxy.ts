import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** Stands between clients and a Redis that fails over, or whose replies get lost. */
export interface RedisProxy {
  readonly url: string;
  /** New connections go to this port from now on. */
  pointTo(port: number): void;
  /** The next bytes from the server get lost, and their connection with them: what was asked for has been done. */
  loseNextReply(): void;
  close(): Promise<void>;
}

export const startRedisProxy = async (targetPort: number): Promise<RedisProxy> => {
  let target = targetPort;
  let losing = false;
  const open = new Set<Socket>();
  const couple = (client: Socket): void => {
    const server = connect(target, '127.0.0.1');
    const part = (): void => {
      client.destroy();
      server.destroy();
      open.delete(client);
    };
    open.add(client);
    for (const end of [client, server]) end.on('error', part).on('close', part);
    client.on('data', bytes => server.write(bytes));
    server.on('data', bytes => {
      if (!losing) return void client.write(bytes);
      losing = false;
      return part();
    });
  };
  const proxy = createServer(couple).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as { port: number };
  return {
    url: `redis://127.0.0.1:${port}`,
    pointTo: next => void (target = next),
    loseNextReply: () => void (losing = true),
    async close() {
      proxy.close();
      for (const client of open) client.destroy();
      await once(proxy, 'close');
    },
  };
};
