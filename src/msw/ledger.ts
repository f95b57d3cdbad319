import type { Clock } from '../clock.js';
import type { RecordedAs, RefusalCode } from '../server/index.js';
import type { Journal } from '../server/store.js';
import type { FaultKind } from './faults.js';

/** What can happen to a request, in the order in which it does. */
export type LedgerEvent =
  /** Its page may not send these headers (see `cors`), so it never arrived. */
  | { readonly kind: 'blocked'; readonly headers: readonly string[] }
  /** It has arrived at the mock. */
  | { readonly kind: 'request'; readonly method: string; readonly url: string }
  /** A fault was planted into it. */
  | { readonly kind: 'fault'; readonly fault: FaultKind }
  /** It has won its key. `attempt` is 1 for the first run under the key. */
  | { readonly kind: 'claim'; readonly scope: string; readonly attempt: number }
  /** Its resolver begins: an effect may happen. */
  | { readonly kind: 'execution' }
  /** The resolver had nothing to say, so that was no execution. */
  | { readonly kind: 'fell-through' }
  /** The resolver's answer; `record` is what is stored of it now. */
  | { readonly kind: 'answer'; readonly status: number; readonly record: RecordedAs }
  | { readonly kind: 'replay'; readonly status: number }
  /** Refused for what the store knows of the key. */
  | { readonly kind: 'conflict'; readonly code: RefusalCode }
  /** Refused for what the request is, or because something failed. */
  | { readonly kind: 'refusal'; readonly code: RefusalCode };

/** One line of the ledger. */
export type LedgerEntry = LedgerEvent & {
  /** ms since the epoch, on the mock's clock. */
  readonly at: number;
  /** The endpoint's name. */
  readonly name: string;
  /** MSW's id of the request. */
  readonly request: string;
  /** The key, unquoted; undefined where there is none that can be read. */
  readonly key: string | undefined;
};

export interface Ledger {
  readonly entries: readonly LedgerEntry[];
  /** Reads what the store's journal has, other pages' entries included. */
  load(): Promise<void>;
  /** Resolves when the entry is in the journal. */
  append(entry: Omit<LedgerEntry, 'at' | keyof LedgerEvent> & LedgerEvent): Promise<void>;
  /** Empties what is in memory; the journal is the store's. */
  clear(): void;
}

/** A list that is read at once and kept in the journal: in memory first, so that its order is that of the events. */
export const createLedger = (journal: Journal, clock: Clock): Ledger => {
  let entries: LedgerEntry[] = [];
  const unsaved = new Set<LedgerEntry>();
  return {
    get entries() {
      return [...entries];
    },
    async load() {
      const saved = (await journal.read()) as LedgerEntry[];
      entries = [...saved, ...unsaved];
    },
    async append(event) {
      const entry: LedgerEntry = { ...event, at: clock.now() };
      entries.push(entry);
      unsaved.add(entry);
      await journal.append(entry);
      unsaved.delete(entry);
    },
    clear() {
      entries = [];
      unsaved.clear();
    },
  };
};

/** How often resolvers really ran: what fell through did not. */
export const countExecutions = (entries: readonly LedgerEntry[], name: string | undefined): number => {
  const mine = entries.filter(entry => name === undefined || entry.name === name);
  const count = (kind: LedgerEvent['kind']): number => mine.filter(entry => entry.kind === kind).length;
  return count('execution') - count('fell-through');
};
