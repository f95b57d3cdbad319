import { setTimeout as sleep } from 'node:timers/promises';
import { createScenarios, type Ability, type ConformanceTarget, type Server, type ServerConfig, type Scenarios, type Traits } from '../../src/testing/conformance.js';
import { faulty, type Faulty } from './faulty.js';

/** Another library, mounted as its README says. */
export interface Peer<Records extends object> {
  readonly traits: Traits;
  /** How it was configured, beside its defaults. */
  readonly configured: string;
  /** The records of one case: its own adapter for memory. */
  createRecords(): Records;
  /** One server process. */
  open(records: Records, scenarios: Scenarios, config: ServerConfig): Promise<Server & { close(): Promise<void> }>;
  /** Deletes what has expired, where it has a function for that. */
  purge?(records: Records): number;
}

/** A target of the kit, and how it was configured. */
export interface PeerTarget {
  readonly target: ConformanceTarget;
  readonly configured: string;
}

/** What every peer can do, because its server, its records and its clock are in this process. */
const COMMON: readonly Ability[] = ['header lines', 'second server', 'crash', 'shutdown', 'guard', 'store down'];

/** ms of real time that a case of these libraries takes at most, beside what it waits for. */
const DRIFT_MS = 900;

/** ms after which a case that hangs has failed. */
const PATIENCE_MS = 15_000;

const processOf = (server: Server & { close(): Promise<void> }, { turn }: Faulty<object>): Server => ({
  ...server,
  crash: () => turn('dead'),
  fail: () => turn('down'),
  // It renews no leases that could be cut off.
  cutOff: () => {},
});

/** Leases and expiry follow the machine's clock, so time passes by waiting. */
export const peerTarget = <Records extends object>({ traits, configured, createRecords, open, purge }: Peer<Records>): PeerTarget => ({
  configured,
  target: {
    ...traits,
    abilities: [...COMMON, ...(traits.abilities ?? [])],
    patience: PATIENCE_MS,
    start() {
      const records = createRecords();
      const scenarios = createScenarios();
      const opened: { close(): Promise<void> }[] = [];
      return {
        drift: DRIFT_MS,
        report: id => scenarios.report(id),
        release: id => scenarios.release(id),
        async open(config) {
          const mine = faulty(records);
          const server = await open(mine.records, scenarios, config);
          opened.push(server);
          return processOf(server, mine);
        },
        advance: ms => sleep(ms),
        ...(purge && { purge: async () => ({ deleted: purge(records), more: false }) }),
        async dispose() {
          await Promise.all(opened.map(server => server.close()));
        },
      };
    },
  },
});
