import { receive, toResponse, type ReceivedAnswer } from './answer.js';
import { createDriver } from './attempts.js';
import { createCalls, type Calls } from './calls.js';
import { createEvents, infoOf } from './events.js';
import { createFlights, placeOf } from './flights.js';
import { newKey } from './key.js';
import type { KeyStore } from './keystore/keystore.js';
import type { Head } from './operation.js';
import { createOperations, type Operations } from './operations.js';
import { deviceScope, type Settings } from './options.js';
import { createRecords, volatileRecords, type Records } from './records.js';
import { createResumer } from './resume.js';
import { startRunner, type Runner } from './runner.js';
import { createSend } from './send.js';
import { isCredential } from './snapshot.js';
import { createTargets, type Identity, type Target } from './target.js';
import { createTidy } from './tidy.js';

/** How many clients of this module use a store; the last one to close closes it. */
const users = new WeakMap<KeyStore, number>();

/** The parts of one client, put together; shared by all that `extend` makes of it. */
export interface Core {
  readonly settings: Settings;
  readonly calls: Calls;
  readonly operations: Operations;
  readonly records: Records;
  scopeOf(given: string | undefined): Promise<string | undefined>;
  readonly target: (identity: Identity) => Target;
  /** Aborts when the client closes. */
  readonly closing: AbortSignal;
  readonly close: () => Promise<void>;
}

/** Opens nothing: the store is touched by the first managed call. */
export const createCore = (settings: Settings, store: KeyStore, defaultOrigin: string): Core => {
  const { clock, random } = settings;
  const closing = new AbortController();
  const events = createEvents(settings.on);
  const flights = createFlights(clock);
  const records = createRecords({ ...settings, store, instance: newKey() });
  const send = createSend(settings);
  const tidy = createTidy(records);
  users.set(store, (users.get(store) ?? 0) + 1);

  let device: Promise<string> | undefined;
  const deviceId = async (): Promise<string> => {
    const ref = { client: settings.client, scope: '', id: 'meta:device' };
    const fresh = { ...ref, key: settings.newKey(), keySource: 'random', elsewhere: true, keyWindow: 0 } as const;
    const head = (await records.get(ref)) ?? (await records.begin(fresh)).head;
    return head?.key ?? fresh.key;
  };
  const scopeOf = async (given: string | undefined): Promise<string | undefined> => {
    if (given !== undefined) return given;
    const { scope } = settings;
    if (scope !== deviceScope) return typeof scope === 'function' ? scope() : scope;
    device ??= deviceId();
    device.catch(() => (device = undefined));
    return device;
  };
  const owns = async (scope: string, given = false): Promise<boolean> => (settings.owns ? settings.owns(scope) : given || scope === ((await scopeOf(undefined)) ?? ''));
  const parkedHere = new Set<string>();

  const { onInDoubt, authorize, secretHeaders } = settings;
  const driverOptions = {
    send, clock, random, events, owns,
    lease: settings.lease,
    maxAnswerBytes: settings.maxAnswerBytes,
    maxServerTime: settings.maxServerTime,
    closing: closing.signal,
    toAnswer: receive,
    ...(authorize && { authorize }),
    ...(onInDoubt && { onInDoubt: (head: Head, answer?: ReceivedAnswer) => onInDoubt(infoOf(head), answer && toResponse(answer, answer.headers)) }),
    defaults: [...new Headers(settings.headers as HeadersInit)].filter(([name]) => isCredential(name, secretHeaders)),
    settled: (head: Head): void => {
      parkedHere.delete(placeOf(head));
      tidy.count();
    },
    parked: (head: Head) => void parkedHere.add(placeOf(head)),
  };
  const driver = createDriver({ ...driverOptions, records });
  const volatile = volatileRecords(records);
  const calls = createCalls({ settings, records, flights, driver, events, tidy: tidy.run, volatile: { records: volatile, driver: createDriver({ ...driverOptions, records: volatile }) } });
  const resumer = createResumer({ settings, records, flights, driver, events, owns, parkedHere, closing: closing.signal });
  const resume: typeof resumer = async options => {
    const report = await resumer(options);
    await tidy.run();
    return report;
  };
  const runners = new Set<Runner>();
  const start: Operations['start'] = options => {
    const onError = (error: unknown): void => events.storeFailure(undefined, error);
    const runner = startRunner({ clock, now: records.now, resume, onError, onStop: () => runners.delete(runner) }, options);
    runners.add(runner);
    return runner;
  };

  const target = createTargets(settings, settings.keyStrategy ?? (store.info.survives === 'none' ? 'random' : 'derived'));

  const operations = createOperations({
    settings, records, flights, calls, events, resume, start, running: () => runners.size > 0,
    scope: () => scopeOf(undefined),
    target: (name, scope) => target({ name, scope, givenKey: undefined, origin: defaultOrigin }),
  });

  const end = async (): Promise<void> => {
    closing.abort(new DOMException('The client was closed', 'AbortError'));
    await Promise.all([...runners].map(runner => runner.stop()));
    await flights.land();
    const left = (users.get(store) ?? 1) - 1;
    users.set(store, left);
    if (left === 0) await store.close();
  };
  let ended: Promise<void> | undefined;
  // Once, because the store counts its clients, and `await using` closes what was closed by hand.
  const close = (): Promise<void> => (ended ??= end());

  return { settings, calls, operations, records, scopeOf, target, closing: closing.signal, close };
};

