import type { Dedup, Handler } from '../../../src/server/index.js';
import { isReplay, requestOf } from './endpoint.js';

/** What became of many identical requests at once. */
export interface Crowd {
  readonly runs: number;
  /** The most handlers that were inside at one time. */
  readonly most: number;
  /** How many were answered by their own run, how many by a replay, how many with 409; anything else by its status. */
  readonly told: Readonly<Record<string, number>>;
}

const sortOf = (response: Response): string => (isReplay(response) ? 'replayed' : response.status === 201 ? 'executed' : String(response.status));

/** Sends the same request `count` times at once, to each of the servers in turn. */
export const crowd = async <Tx>(servers: readonly Dedup<Tx>[], count: number, handler: Handler<Response, Tx>): Promise<Crowd> => {
  let [runs, inside, most] = [0, 0, 0];
  const counted: Handler<Response, Tx> = async (request, context) => {
    runs += 1;
    inside += 1;
    most = Math.max(most, inside);
    try {
      return await handler(request, context);
    } finally {
      inside -= 1;
    }
  };
  const responses = await Promise.all(Array.from({ length: count }, (_, at) => (servers[at % servers.length] as Dedup<Tx>).handle(requestOf({ key: 'k' }), counted, { name: 'charge' })));
  const told: Record<string, number> = {};
  for (const sort of responses.map(sortOf)) told[sort] = (told[sort] ?? 0) + 1;
  return { runs, most, told };
};
