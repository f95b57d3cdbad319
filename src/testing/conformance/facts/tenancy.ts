import { ensure, ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import { codeOf, ensureRuns, ensureSame } from './common.js';

/** Tenants and endpoints that run into each other when their names are joined. */
const STRANGERS: readonly (readonly [tenant: string, path: string])[] = [
  ['a', '/charges'], ['b', '/charges'], ['a', '/refunds'], ['ac', '/harges'], ['a:charges', '/refunds'], ['a', '/charges:refunds'],
];

/** Whose key it is. */
export const tenancy: readonly Fact[] = [
  {
    id: '50a',
    name: 'C84: two tenants with the same key and the same body are strangers',
    needs: ['tenants'],
    async run({ scenario }) {
      const charge = scenario();
      const mine = await charge.send({ tenant: 'a' });
      const yours = await charge.send({ tenant: 'b' });
      ensureEqual([mine.status, yours.status], [201, 201], 'both run');
      ensure(new TextDecoder().decode(mine.bytes) !== new TextDecoder().decode(yours.bytes), 'neither gets the other’s answer');
      await ensureRuns(charge, 2);
      ensureSame(await charge.send({ tenant: 'a' }), mine);
      ensureSame(await charge.send({ tenant: 'b' }), yours);
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '50b',
    name: 'C84: names of tenants and endpoints never run into each other',
    needs: ['tenants', 'endpoints'],
    async run({ scenario }) {
      const charge = scenario();
      for (const [tenant, path] of STRANGERS) ensureEqual((await charge.send({ tenant, path })).status, 201, `${tenant} at ${path} is a stranger`);
      await ensureRuns(charge, STRANGERS.length);
    },
  },
  {
    id: '50c',
    name: 'C84: a request of nobody is refused: nobody shares keys with strangers',
    needs: ['tenants'],
    wording: true,
    async run({ scenario }) {
      const charge = scenario();
      const refused = await charge.send({ tenant: '' });
      ensureEqual([refused.status, codeOf(refused)], [400, 'idempotency_scope_missing'], 'status and code');
      await ensureRuns(charge, 0);
    },
  },
];
