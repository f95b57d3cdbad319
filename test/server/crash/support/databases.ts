import type { AtEnd } from '../../../keystore/support/processes.js';
import { freshMysql } from '../../support/mysql.js';
import { freshPostgres } from '../../support/postgres.js';
import { freshSqlite } from '../../support/sqlite.js';
import type { Endpoint, Step, WorkerDatabase } from './job.js';

/** A request that is to stand still at a step when its worker is killed. */
export interface Parked {
  readonly endpoint: Endpoint;
  readonly step: Step;
}

/** A database of the workers' own, and what the test sees of it. */
export interface CrashDatabase {
  readonly at: WorkerDatabase;
  /** The ids of the charges of a key. */
  charges(key: string): Promise<readonly number[]>;
  /** Those of all keys that have any. */
  allCharges(): Promise<ReadonlyMap<string, readonly number[]>>;
  /** Lets `ms` pass for the lease of a key. */
  pass(key: string, ms: number): Promise<void>;
  /** Resolves when the server has noticed that all workers are gone. */
  workersGone(): Promise<void>;
  close(): Promise<void>;
}

export interface CrashSubject {
  readonly name: string;
  open(atEnd?: AtEnd): Promise<CrashDatabase>;
  /** Requests that can stand still in one process at the same time. */
  readonly batches: readonly (readonly Parked[])[];
}

interface Charge {
  readonly id: number;
  readonly label: string;
}

const ALL_CHARGES = 'SELECT id, label FROM charges';

const byLabel = (charges: readonly Charge[]): ReadonlyMap<string, readonly number[]> => {
  const ids = new Map<string, number[]>();
  for (const { id, label } of charges) ids.set(label, [...(ids.get(label) ?? []), id]);
  return ids;
};

const WITHIN: readonly Step[] = ['after-claim', 'after-effect', 'before-record', 'before-commit', 'after-record'];
/** The record of a leased run that had its effect elsewhere is written without a transaction. */
const ELSEWHERE: readonly Step[] = ['after-claim', 'after-announcement', 'after-effect', 'before-record', 'after-record'];

const STEPS: Readonly<Record<Endpoint, readonly Step[]>> = {
  tx: WITHIN,
  'tx-elsewhere': [...ELSEWHERE, 'before-commit'],
  lease: WITHIN,
  'lease-elsewhere': ELSEWHERE,
  'lease-marked': ELSEWHERE,
};

const parkable = (...endpoints: readonly Endpoint[]): Parked[] => endpoints.flatMap(endpoint => STEPS[endpoint].map(step => ({ endpoint, step })));

const all = parkable('tx', 'tx-elsewhere', 'lease', 'lease-elsewhere', 'lease-marked');

const postgres: CrashSubject = {
  name: 'PostgreSQL',
  batches: [all],
  async open() {
    const { place, pool, drop } = await freshPostgres({ max: 2, application_name: 'samekey-test' });
    const workers = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'samekey-test'`;
    return {
      at: { kind: 'postgres', place }, close: drop,
      pass: async (key, ms) => void (await pool.query(`UPDATE idempotency_keys SET lease_until = lease_until - $2::float8 * interval '1 millisecond' WHERE id_key = $1`, [key, ms])),
      charges: async key => (await pool.query<{ id: number }>('SELECT id FROM charges WHERE label = $1', [key])).rows.map(({ id }) => id),
      allCharges: async () => byLabel((await pool.query<Charge>(ALL_CHARGES)).rows),
      async workersGone() {
        while ((await pool.query(workers)).rowCount !== 0);
      },
    };
  },
};

const mysql: CrashSubject = {
  name: 'MariaDB',
  batches: [all],
  async open() {
    const { place, pool, drop } = await freshMysql({ connectionLimit: 1 });
    const workers = 'SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()';
    return {
      at: { kind: 'mysql', place }, close: drop,
      pass: async (key, ms) => void (await pool.query('UPDATE idempotency_keys SET lease_until = lease_until - INTERVAL ? MICROSECOND WHERE id_key = ?', [ms * 1000, key])),
      charges: async key => (await pool.query<never[]>('SELECT id FROM charges WHERE label = ?', [key]))[0].map(({ id }) => id as number),
      allCharges: async () => byLabel((await pool.query<never[]>(ALL_CHARGES))[0]),
      async workersGone() {
        for (let rows: unknown[] = [{}]; rows.length > 0; ) [rows] = await pool.query<never[]>(workers);
      },
    };
  },
};

/** While one transaction is open nobody else can write, so each of these stands alone. */
const ALONE: readonly Step[] = ['after-effect', 'before-record', 'before-commit'];
const leased = parkable('lease', 'lease-elsewhere', 'lease-marked');
const isAlone = ({ endpoint, step }: Parked): boolean => endpoint === 'lease' && ALONE.includes(step);

const sqlite: CrashSubject = {
  name: 'SQLite',
  batches: [leased.filter(parked => !isAlone(parked)), ...leased.filter(isAlone).map(parked => [parked])],
  async open(atEnd) {
    const { path, sqlite: own, close } = await freshSqlite(undefined, atEnd);
    return {
      at: { kind: 'sqlite', path },
      pass: async (key, ms) => void own.prepare('UPDATE idempotency_keys SET lease_until = lease_until - ? WHERE id_key = ?').run(ms, key),
      charges: async key => own.prepare('SELECT id FROM charges WHERE label = ?').all(key).map(({ id }) => id as number),
      allCharges: async () => byLabel(own.prepare(ALL_CHARGES).all() as unknown as Charge[]),
      // The locks of a process end with it.
      workersGone: async () => {},
      close: async () => close(),
    };
  },
};

export const SUBJECTS: readonly CrashSubject[] = [postgres, mysql, sqlite];
