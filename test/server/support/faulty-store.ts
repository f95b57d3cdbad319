import type { DedupStore } from '../../../src/server/index.js';
import type { StoreFault } from '../../../src/testing/conformance.js';

type Method = 'claim' | 'renew' | 'settle';

/** `refused`: fails before anything is done; `lost`: after it was done. */
interface Plan {
  readonly method: Method | undefined;
  readonly how: 'refused' | 'lost';
  times: number;
}

const PLANS: Readonly<Record<StoreFault, Plan>> = {
  'down': { method: undefined, how: 'refused', times: Infinity },
  'claim-lost': { method: 'claim', how: 'lost', times: 1 },
  'settle-refused': { method: 'settle', how: 'refused', times: 1 },
  'settle-lost': { method: 'settle', how: 'lost', times: 1 },
  'settle-down': { method: 'settle', how: 'refused', times: Infinity },
};

/** A store whose calls go wrong when they are told to. */
export interface FaultyStore {
  readonly store: DedupStore;
  /** Calls that have not come back yet. */
  readonly pending: number;
  fail(fault: StoreFault): void;
  /** Whether leases can be renewed no more. */
  cutOff(cut: boolean): void;
}

export const faultyStore = (store: DedupStore): FaultyStore => {
  let plan: Plan | undefined;
  let isCut = false;
  let pending = 0;
  const work = async <T>(method: Method, call: () => Promise<T>): Promise<T> => {
    if (isCut && method === 'renew') throw new Error('The connection is cut, as the case says.');
    const hit = plan && plan.times > 0 && (plan.method ?? method) === method ? plan : undefined;
    if (hit) hit.times -= 1;
    if (hit?.how === 'refused') throw new Error('The store cannot be reached, as the case says.');
    const result = await call();
    if (hit) throw new Error('The connection was lost, as the case says.');
    return result;
  };
  const counted = async <T>(method: Method, call: () => Promise<T>): Promise<T> => {
    pending += 1;
    try {
      return await work(method, call);
    } finally {
      pending -= 1;
    }
  };
  const { enter } = store;
  return {
    store: {
      ...store,
      claim: claim => counted('claim', () => store.claim(claim)),
      renew: (hold, lease, started) => counted('renew', () => store.renew(hold, lease, started)),
      settle: (hold, settlement) => counted('settle', () => store.settle(hold, settlement)),
      // It lasts as long as its run, so it is not waited for.
      ...(enter && { enter: (claim, run) => work('claim', () => enter(claim, run)) }),
    },
    get pending() {
      return pending;
    },
    fail: fault => void (plan = { ...PLANS[fault] }),
    cutOff: cut => void (isCut = cut),
  };
};
