import { naturalKey } from '../../src/key.js';
import { adyen, azure, generic, gocardless, ietf, paypal, square, stripe, type Meaning, type Profile } from '../../src/profiles/index.js';
import { meaningsOf } from '../../src/profiles/profile.js';
import { createDedup, type Dedup, type DedupOptions, type HandlerContext } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock, type ManualClock } from '../support/manual-clock.js';

export const PROFILES: readonly Profile[] = [ietf, generic, stripe, stripe({ version: 2 }), adyen, paypal, square, gocardless, azure];

/** A key that every dialect can carry: UUIDv5, which says nothing about its age. */
export const keyOf = (label: string): string => naturalKey('https://keys.test', label);

export interface Sent {
  readonly key?: string;
  readonly json?: object;
  readonly method?: string;
  /** ms since 1970. */
  readonly firstSentAt?: number;
  readonly headers?: Record<string, string>;
}

const CHARGE = { amount: 4200 };

/** A request that carries its key as the dialect has it, made without the client. */
export const requestOf = (profile: Profile, { key, json = CHARGE, method = 'POST', firstSentAt, headers = {} }: Sent, now: number): Request => {
  const { header, bodyField, firstSentHeader } = profile;
  const body = bodyField && key !== undefined ? { [bodyField.name]: key, ...json } : json;
  return new Request('https://api.test/charges', {
    method,
    headers: {
      'content-type': 'application/json',
      ...(header !== undefined && key !== undefined && { [header]: key }),
      ...(firstSentHeader !== undefined && key !== undefined && { [firstSentHeader]: new Date(firstSentAt ?? now).toUTCString() }),
      ...headers,
    },
    ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
  });
};

export interface DialectServer {
  readonly clock: ManualClock;
  readonly dedup: Dedup;
  /** How often the handler was entered. */
  readonly runs: number;
  send(sent: Sent): Promise<Response>;
}

type Work = (request: Request, context: HandlerContext, run: number) => Response | Promise<Response>;

const created: Work = (_request, _context, run) => Response.json({ charges: { id: `CH${run}` } }, { status: 201 });

/** A server that speaks a dialect, in this process, with a handler that counts. */
export const serverOf = (profile: Profile, work: Work = created, options: Partial<DedupOptions> = {}): DialectServer => {
  const clock = manualClock();
  let runs = 0;
  const dedup = createDedup({ store: memoryDedupStore({ clock }), clock, scope: () => 'acme', profile, on: { failed: () => {} }, ...options });
  return {
    clock,
    dedup,
    get runs() {
      return runs;
    },
    send: sent => dedup.handle(requestOf(profile, sent, clock.now()), (request, context) => work(request, context, (runs += 1)), { name: 'charge' }),
  };
};

/** What an answer says in a dialect. */
export const read = (profile: Profile, status: number, json?: unknown, headers: Record<string, string> = {}): Meaning[] =>
  [...meaningsOf(profile, { status, headers: new Headers(headers), json })].sort();

/** What a client of the dialect hears. */
export const heard = async (profile: Profile, response: Response): Promise<Meaning[]> => {
  const text = await response.text();
  return read(profile, response.status, text.startsWith('{') ? JSON.parse(text) : undefined, Object.fromEntries(response.headers));
};

/** A promise and what settles it. */
export const gate = (): { readonly opened: Promise<void>; readonly open: () => void } => {
  let open!: () => void;
  const opened = new Promise<void>(resolve => (open = resolve));
  return { opened, open };
};
