import { createDedup, type Dedup, type DedupOptions, type DedupRecord, type DedupStore, type Handler, type HandlerContext } from '../../../src/server/index.js';
import { gate, requestOf, type Sent } from '../support/endpoint.js';

/** A store on a SQL database, with a table of charges beside it. */
export interface ShopDatabase<Tx> {
  readonly store: DedupStore<Tx>;
  /** Writes a charge through a handler's transaction. */
  insert(tx: Tx, label: string, attempt: number): Promise<unknown>;
  /** Charges that are committed. */
  charges(): Promise<number>;
  /** Lets time pass for the store. */
  pass(ms: number): Promise<void>;
}

/** An endpoint of that shop. */
export interface Shop<Tx> {
  readonly dedup: Dedup<Tx>;
  /** What handlers have failed with. */
  readonly failures: unknown[];
  send(handler: Handler<Response, Tx>, sent?: Sent): Promise<Response>;
  /** Writes one charge in the transaction of the handler. */
  insert(context: HandlerContext<Tx>): Promise<void>;
  /** Charges, and answers 201. */
  readonly charge: Handler<Response, Tx>;
  charges(): Promise<number>;
  pass(ms: number): Promise<void>;
  /** The record of a key. */
  record(key?: string): Promise<DedupRecord | undefined>;
}

export const openShop = <Tx>({ store, pass, charges, ...database }: ShopDatabase<Tx>, options: Partial<DedupOptions<Tx>> = {}): Shop<Tx> => {
  const failures: unknown[] = [];
  const dedup = createDedup({ store, scope: () => 'acme', on: { failed: error => void failures.push(error) }, ...options });
  const insert = async (context: HandlerContext<Tx>): Promise<void> => void (await database.insert(await context.transaction(), context.key ?? '', context.attempt));
  return {
    dedup, failures, insert, charges, pass,
    send: (handler, sent = { key: 'k' }) => dedup.handle(requestOf(sent), handler, { name: 'charge' }),
    async charge(_request, context) {
      await insert(context);
      return Response.json({ charged: true }, { status: 201 });
    },
    record: (key = 'k') => store.get({ scope: '4:acme6:charge', key }),
  };
};

/** A request whose handler waits inside until it is let go on. */
export const hold = async <Tx>(shop: Shop<Tx>, handler: Handler<Response, Tx>, sent?: Sent): Promise<{ readonly first: Promise<Response>; readonly goOn: () => void }> => {
  const [entered, end] = [gate(), gate()];
  const first = shop.send(async (request, context) => {
    entered.open();
    await end.opened;
    return handler(request, context);
  }, sent);
  await entered.opened;
  return { first, goOn: end.open };
};
