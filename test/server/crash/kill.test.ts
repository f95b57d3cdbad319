import { afterAll, describe, expect, test } from 'vitest';
import type { AtEnd } from '../../keystore/support/processes.js';
import { openForAll } from '../../support/open-for-all.js';
import { SUBJECTS, type CrashDatabase, type CrashSubject, type Parked } from './support/databases.js';
import type { Endpoint, Step } from './support/job.js';
import { codeOf, expectExecuted, expectReplay, startWorker, type WorkerProcess } from './support/scene.js';

/** Only catches hangs: processes start slowly on a busy machine. */
const PATIENCE_MS = 60_000;

/** ms; much longer than any test, so that no lease ends by itself. */
const LEASE_MS = 3_600_000;

/** Those that requests hold while they stand still, and some for those that do not. */
const CONNECTIONS = 18;

/** Requests that come at once when a lease has ended. */
const RACERS = 10;

const keyOf = ({ endpoint, step }: Parked): string => `${endpoint}:${step}`;

interface Scene extends CrashDatabase {
  /** The process that gets the same requests after the first one is dead. */
  readonly survivor: WorkerProcess;
}

/** Kills one worker per batch, with all requests of the batch standing at their steps. */
const openScene = async ({ open, batches }: CrashSubject, atEnd: AtEnd): Promise<Scene> => {
  const database = await open(atEnd);
  const job = { database: database.at, connections: CONNECTIONS, lease: LEASE_MS };
  for (const batch of batches) {
    const worker = startWorker(job, atEnd);
    await Promise.all(batch.map(parked => worker.park(parked.endpoint, keyOf(parked), parked.step)));
    await worker.kill();
  }
  await database.workersGone();
  return { ...database, survivor: startWorker(job, atEnd) };
};

/** What the death of a worker leaves of a request, and what the next worker makes of the same one. */
type Fate = (scene: Scene, endpoint: Endpoint, key: string) => Promise<void>;

const recorded: Fate = async ({ survivor, charges }, endpoint, key) => {
  const before = await charges(key);
  expect(before).toHaveLength(1);
  expect(await expectReplay(await survivor.send(endpoint, key))).toEqual({ id: before[0] });
  expect(await charges(key)).toEqual(before);
};

/** Expects one charge, and that a repeat gets the answer which tells of it. */
const expectOnce: Fate = async ({ survivor, charges }, endpoint, key) => {
  const [id, ...more] = await charges(key);
  expect([await expectReplay(await survivor.send(endpoint, key)), more]).toEqual([{ id }, []]);
};

const free: Fate = async (scene, endpoint, key) => {
  expect(await scene.charges(key)).toEqual([]);
  await expectExecuted(await scene.survivor.send(endpoint, key));
  await expectOnce(scene, endpoint, key);
};

const expectHeld: Fate = async ({ survivor }, endpoint, key) => {
  const response = await survivor.send(endpoint, key);
  expect([response.status, await codeOf(response)]).toEqual([409, 'idempotency_in_progress']);
  const retryAfter = Number(response.headers.get('retry-after'));
  expect(retryAfter >= 1 && retryAfter <= LEASE_MS / 1000).toBe(true);
};

const freeAfterLease: Fate = async (scene, endpoint, key) => {
  expect(await scene.charges(key)).toEqual([]);
  await expectHeld(scene, endpoint, key);
  await scene.pass(key, LEASE_MS + 1);
  const racers = await Promise.all(Array.from({ length: RACERS }, () => scene.survivor.send(endpoint, key)));
  const statuses = racers.map(({ status, headers }) => (headers.has('idempotent-replayed') ? 'replay' : status));
  expect([statuses.filter(status => status === 201).length, statuses.filter(status => ![201, 409, 'replay'].includes(status))]).toEqual([1, []]);
  await expectOnce(scene, endpoint, key);
};

const expectDoubt: Fate = async ({ survivor }, endpoint, key) => {
  const response = await survivor.send(endpoint, key);
  expect([response.status, await codeOf(response)]).toEqual([409, 'idempotency_indeterminate']);
};

/** @param effects - charges that stay, whatever comes */
const doubtful = (effects: number): Fate => async (scene, endpoint, key) => {
  expect(await scene.charges(key)).toHaveLength(effects);
  await expectDoubt(scene, endpoint, key);
  await expectDoubt(scene, endpoint, key);
  expect(await scene.charges(key)).toHaveLength(effects);
};

const doubtfulAfterLease = (effects: number): Fate => async (scene, endpoint, key) => {
  await expectHeld(scene, endpoint, key);
  await scene.pass(key, LEASE_MS + 1);
  await doubtful(effects)(scene, endpoint, key);
};

type Fates = Readonly<Partial<Record<Step, readonly [title: string, fate: Fate]>>>;

const AT_ONCE = ['nothing is left, and the next one runs at once', free] as const;
const AFTER_LEASE = ['nothing is left, and one of many runs when the lease is over', freeAfterLease] as const;
const DOUBT = ['the effect stays one, and the key is in doubt at once', doubtful(1)] as const;
const LATER_DOUBT = ['the effect stays one, and the key is in doubt when the lease is over', doubtfulAfterLease(1)] as const;
const NO_EFFECT_YET = ['the key is in doubt at once, though nothing happened', doubtful(0)] as const;
const NO_EFFECT = ['nobody can know that nothing happened: the key is in doubt when the lease is over', doubtfulAfterLease(0)] as const;
const RECORDED = ['the next one gets the recorded answer', recorded] as const;

const FATES: Readonly<Record<Endpoint, Fates>> = {
  tx: { 'after-claim': AT_ONCE, 'after-effect': AT_ONCE, 'before-record': AT_ONCE, 'before-commit': AT_ONCE },
  'tx-elsewhere': { 'after-claim': AT_ONCE, 'after-announcement': NO_EFFECT_YET, 'after-effect': DOUBT, 'before-record': DOUBT, 'before-commit': DOUBT },
  lease: { 'after-claim': AFTER_LEASE, 'after-effect': AFTER_LEASE, 'before-record': AFTER_LEASE, 'before-commit': AFTER_LEASE },
  'lease-elsewhere': { 'after-claim': NO_EFFECT, 'after-announcement': NO_EFFECT, 'after-effect': LATER_DOUBT, 'before-record': LATER_DOUBT },
  'lease-marked': { 'after-claim': AFTER_LEASE, 'after-announcement': NO_EFFECT, 'after-effect': LATER_DOUBT, 'before-record': LATER_DOUBT },
};

const TITLES: Readonly<Record<Endpoint, string>> = {
  tx: 'effects in the transaction that holds the key',
  'tx-elsewhere': 'effects elsewhere, announced in the transaction that holds the key',
  lease: 'effects in a transaction under a lease',
  'lease-elsewhere': 'effects elsewhere under a lease',
  'lease-marked': 'effects elsewhere under a lease, and none before their announcement',
};

const CASES: Readonly<Record<Step, string>> = {
  'after-claim': '34, C68: killed after its claim',
  'after-announcement': '35, C69: killed after its announcement',
  'after-effect': '35, C69: killed after its effect',
  'before-record': '35, C69: killed before its record',
  'before-commit': '35: killed before its commit',
  'after-record': '30: killed after its record',
};

describe.each(SUBJECTS)('a worker that dies by SIGKILL, $name', subject => {
  let scene: Scene;
  const endings: (() => void)[] = [];
  // Also where opening has failed half way.
  afterAll(() => endings.forEach(end => end()));
  openForAll(async () => {
    scene = await openScene(subject, end => endings.push(end));
    return async () => {
      await scene.survivor.kill();
      await scene.workersGone();
      await scene.close();
    };
  }, PATIENCE_MS);

  for (const parked of subject.batches.flat()) {
    const { endpoint, step } = parked;
    const [title, fate] = FATES[endpoint][step] ?? RECORDED;
    test(`${CASES[step]}, ${TITLES[endpoint]}: ${title}`, { timeout: PATIENCE_MS }, () => fate(scene, endpoint, keyOf(parked)));
  }
});
