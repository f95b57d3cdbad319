import type { Clock } from './clock.js';
import { StoreCorruptError, StoreFullError, StoreUnavailableError, isSamekeyError, type SamekeyError } from './errors.js';
import type { Cursor, Durability, HeadRef, KeyStore, ScanQuery } from './keystore/keystore.js';
import { HEAD_FORMAT, isMeta, refOf, type Head, type Lease } from './operation.js';
import { transition, written, type Context, type OperationEvent } from './transitions.js';
import { WINDOW_MARGIN_MS, isWindowOver } from './window.js';

export interface RecordsOptions {
  readonly store: KeyStore;
  readonly client: string;
  /** Most open heads. */
  readonly maxUnsettled: number;
  readonly clock: Clock;
  /** Names this client among those that share the store. */
  readonly instance: string;
  /** ms that a driver may be silent. */
  readonly lease: number;
  readonly retention: number;
  readonly nameRetention: number;
}

/** What a head is begun with; the rest follows. */
export type NewHead = Pick<Head, 'client' | 'scope' | 'id' | 'name' | 'key' | 'keySource' | 'elsewhere' | 'keyWindow'> &
  Partial<Pick<Head, 'snapshot' | 'request' | 'fingerprint' | 'firstSentAt' | 'lease' | 'parked' | 'state' | 'reason'>>;

/** What became of a wish to change a head. */
export interface Applied {
  readonly done: boolean;
  /** The head as it is now; undefined when it is gone. */
  readonly head: Head | undefined;
}

/** The store as the client sees it: heads, transitions and time. The only place that writes. */
export interface Records {
  readonly context: () => Context;
  /** Wall time that does not go back: the highest that this process or the store has seen, moved on by the monotonic clock. */
  readonly now: () => number;
  /** A lease of this client, from now. */
  readonly lease: () => Promise<Lease>;
  get(ref: HeadRef): Promise<Head | undefined>;
  /** A shelf of this client, page by page, without the rows that are no operations. A page ends where `limit` heads were read. */
  pages(query: Omit<ScanQuery, 'client' | 'after'>): AsyncGenerator<Head[]>;
  /** Makes a head where there is none. `done: false` brings the one that was there first. */
  begin(head: NewHead): Promise<Applied>;
  /** Does what the table of transitions allows: on the newest version of the head, or, where that would take it from whoever wrote first, on this one only. */
  apply(head: Head, event: OperationEvent, durability?: Durability): Promise<Applied>;
  remove(head: Head): Promise<boolean>;
  /** Whether nobody drives the head, so that it may be claimed. */
  isFree(head: Head): Promise<boolean>;
  /** Whether one more send, which may take `timeout` ms, could meet a server that has forgotten the key. */
  isWindowOver(head: Head, timeout: number): boolean;
  /** Whether this client holds the head's lease. */
  isOwn(head: Head): boolean;
}

/** Events that rest on what was seen in the head (it was free, it was rejected); a newer head must be looked at again. */
const ON_SIGHT: ReadonlySet<OperationEvent['type']> = new Set(['claim', 'revise', 'advance', 'abandon', 'cancel']);

/** Nothing to compare with, nothing to write: heads that live as long as their call does. */
export const volatileRecords = (records: Records): Records => ({
  ...records,
  lease: async () => ({ owner: '', until: Number.MAX_SAFE_INTEGER }),
  begin: async head => ({ done: true, head: firstHead(head, records.context()) }),
  apply: async (head, event) => {
    const next = transition(head, event, records.context());
    return { done: next !== undefined, head: next ?? head };
  },
});

const firstHead = (head: NewHead, context: Context): Head => {
  const { now } = context;
  const blank = { version: now, shelf: 'open', due: now, writtenAt: now, format: HEAD_FORMAT, request: null, response: null } as const;
  const fresh = { generation: 1, revision: 1, state: 'pending', createdAt: now, attempts: 0, ambiguous: false, sawSuccess: false, fence: 1, past: [] } as const;
  return written({ ...blank, ...fresh, ...head }, context);
};

/** Store errors as the family; a store of one's own may throw anything. */
const storeError = (error: unknown): SamekeyError =>
  isSamekeyError(error)
    ? error
    : new StoreUnavailableError(`The key store failed: ${String(error)}. Nothing was sent without its record; see \`cause\`.`, { cause: error });

const guard = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    throw storeError(error);
  }
};

interface Timekeeper {
  readonly now: () => number;
  readonly saw: (time: number) => void;
  /** Whether it cannot be told how long ago a time was: it comes from a clock that was ahead and has been set back. */
  readonly isUntold: (time: number) => boolean;
}

/** How far the time that a store has noted may lag behind its newest head, ms; stores note it about once a second. */
const LATEST_LAG_MS = 2_000;

const timekeeper = (clock: Clock): Timekeeper => {
  const monotonic = (): number => clock.monotonic?.() ?? 0;
  let high = 0;
  let at = monotonic();
  let ahead = Number.NEGATIVE_INFINITY;
  const now = (): number => {
    const moved = monotonic();
    // Whole ms: it is written into records.
    high = Math.max(clock.now(), high === 0 ? 0 : Math.floor(high + moved - at));
    at = moved;
    return high;
  };
  const isAhead = (time: number): boolean => time > clock.now() + WINDOW_MARGIN_MS;
  return {
    now,
    saw: time => {
      if (isAhead(time)) ahead = time + LATEST_LAG_MS;
      // What this process writes itself is later than all that it found, so its own times are told apart.
      high = Math.max(now(), isAhead(time) ? ahead + 1 : time);
    },
    isUntold: time => time <= ahead && isAhead(time),
  };
};

/** Begins between two counts of what is open: others may write to the store too. */
const RECOUNT_EVERY = 256;

/** Keeps count of what is open, so that a server that never answers cannot fill the disk. */
const createQuota = ({ store, client, maxUnsettled }: Pick<RecordsOptions, 'store' | 'client' | 'maxUnsettled'>) => {
  let open = Infinity;
  let begun = 0;
  return {
    /** @throws StoreFullError */
    assertRoom: async (): Promise<void> => {
      if (open >= maxUnsettled || begun % RECOUNT_EVERY === 0) open = await guard(store.countOpen(client));
      if (open < maxUnsettled) return;
      throw new StoreFullError(`${open} operations are unsettled, and maxUnsettled allows ${maxUnsettled}. Nothing was sent. See operations.list({ state: 'pending' }): resume, reconcile or cancel some, or raise maxUnsettled.`);
    },
    note: (before: Head | undefined, next: Head | undefined): void => {
      if (!before) begun += 1;
      open += Number(next?.shelf === 'open') - Number(before?.shelf === 'open');
    },
  };
};

export const createRecords = (options: RecordsOptions): Records => {
  const { store: anyStore, client, clock, instance, lease: leaseMs, retention, nameRetention } = options;
  const quota = createQuota(options);
  const store = anyStore as unknown as KeyStore<Head>;
  const time = timekeeper(clock);
  let owner: Promise<string> | undefined;

  const open = (): Promise<string> => {
    owner ??= guard(Promise.all([store.owner(), store.latest()])).then(([name, latest]) => {
      time.saw(latest);
      return `${name}#${instance}`;
    });
    // A store that failed to open is asked again at the next call.
    owner.catch(() => (owner = undefined));
    return owner;
  };
  const context = (): Context => ({ now: time.now(), retention, nameRetention });

  const write = async (before: Head | undefined, next: Head | undefined, durability: Durability): Promise<Applied> => {
    const ref = refOf((before ?? next) as Head);
    const [result] = await guard(store.commit([{ ref, expect: before?.version ?? 'absent', next }], durability));
    if (result?.kind === 'failed') throw storeError(result.error);
    if (result?.kind === 'conflict') return { done: false, head: result.head };
    quota.note(before, next);
    return { done: true, head: next };
  };

  const isOwn = (head: Head): boolean => head.lease?.owner.endsWith(`#${instance}`) === true;

  return {
    context,
    now: time.now,
    isOwn,
    isWindowOver: (head, timeout) => isWindowOver(head, time.now(), timeout) || (head.firstSentAt !== undefined && time.isUntold(head.firstSentAt)),
    lease: async () => ({ owner: await open(), until: time.now() + leaseMs }),
    get: async ref => {
      await open();
      return guard(store.get(ref));
    },
    pages: async function* (query) {
      for (let after: Cursor | undefined; ; ) {
        const page: Head[] = await guard(store.scan({ ...query, client, ...(after && { after }) }));
        yield page.filter(head => !isMeta(head));
        after = page.at(-1);
        if (!after || page.length < query.limit) return;
      }
    },
    begin: async head => {
      await open();
      await quota.assertRoom();
      return write(undefined, firstHead(head, context()), 'strict');
    },
    apply: async (head, event, durability = 'strict') => {
      for (let current: Head | undefined = head; ; ) {
        const next: Head | undefined = current && !current.unreadable ? transition(current, event, context()) : undefined;
        if (!current || !next) return { done: false, head: current };
        const result: Applied = await write(current, next, durability);
        if (result.done || ON_SIGHT.has(event.type)) return result;
        current = result.head;
      }
    },
    remove: async head => (await write(head, undefined, 'strict')).done,
    isFree: async head => {
      if (!head.lease) return true;
      const liveness = await guard(store.liveness(head.lease.owner.replace(/#[^#]*$/, '')));
      // Silent but alive (a frozen tab, a stopped process) gets one full lease more than it asked for.
      const patience = liveness === 'alive' ? leaseMs : 0;
      return liveness === 'dead' || time.now() >= head.lease.until + patience;
    },
  };
};

/** @throws StoreCorruptError for a head that cannot be read, or was written by a newer version */
export const assertReadable = (head: Head): void => {
  if (head.unreadable !== undefined) {
    throw new StoreCorruptError(`The record "${head.id}" is there but cannot be read (${head.unreadable}). It is left as it is; nothing was sent. Ask the server what became of it, then call operations.reconcile.`);
  }
  if (head.format > HEAD_FORMAT) {
    throw new StoreCorruptError(`The record "${head.id}" has format ${head.format}, this version of samekey reads up to ${HEAD_FORMAT}. It is left alone; nothing was sent. Update samekey in this process.`);
  }
};
