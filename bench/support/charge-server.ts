import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A process of its own that answers every request at once, so that its work is not counted as the client's. It sends its port to its parent. */
const ANSWER = JSON.stringify({ id: 'ch_1', amount: 4200 });

const server = createServer((incoming, outgoing) => {
  incoming.resume().on('end', () => outgoing.writeHead(201, { 'content-type': 'application/json' }).end(ANSWER));
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit());
