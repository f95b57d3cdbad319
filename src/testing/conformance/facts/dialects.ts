import { ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import { toBase64 } from '../scenario.js';
import type { Scenario, Sent } from '../stage.js';
import { ensureRuns, startHeld } from './common.js';

/** The scenario's key in the header of a dialect. */
const keyIn = (header: string, { key }: Scenario): Sent => ({ key: null, headers: { [header]: key } });

/** What a server says whose dialect is a provider's. */
export const dialects: readonly Fact[] = [
  {
    id: '60a',
    name: 'gocardless: a create is never repeated, but refused with the id of what is there',
    config: { profile: 'gocardless' },
    async run({ scenario }) {
      const charge = scenario({ body: toBase64('{"payments":{"id":"PM123"}}') });
      ensureEqual((await charge.send()).status, 201, 'the first request creates');
      const again = await charge.send();
      const { error } = again.json as { error: { errors: readonly { reason: string; links: object }[] } };
      ensureEqual([again.status, error.errors[0]?.reason, error.errors[0]?.links], [409, 'idempotent_creation_conflict', { conflicting_resource_id: 'PM123' }], 'the second names it');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '60b',
    name: 'azure: a request that was first sent before the window is refused with 412, whether its key is known or not',
    config: { profile: 'azure' },
    async run({ scenario }) {
      const charge = scenario();
      const headers = { 'repeatability-request-id': charge.key, 'repeatability-first-sent': 'Thu, 01 Jan 2015 00:00:00 GMT' };
      const refused = await charge.send({ key: null, headers });
      ensureEqual([refused.status, refused.headers.get('repeatability-result')], [412, 'rejected'], 'status and Repeatability-Result');
      await ensureRuns(charge, 0);
    },
  },
  {
    id: '60c',
    name: 'paypal: a repeat gets the latest state of what the first request made',
    config: { profile: 'paypal', latest: true },
    async run({ scenario }) {
      const charge = scenario();
      const sent = keyIn('paypal-request-id', charge);
      ensureEqual((await charge.send(sent)).status, 201, 'the first request creates');
      const again = await charge.send(sent);
      ensureEqual([again.status, again.json], [200, { state: 'latest' }], 'the second gets what is there now');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '60d',
    name: 'adyen: a duplicate of a run in progress gets 409, errorCode 704 and Transient-Error',
    config: { profile: 'adyen' },
    async run({ scenario }) {
      const charge = scenario({ hold: true }, {});
      const { answer } = await startHeld(charge);
      const refused = await charge.send();
      const { errorCode } = refused.json as { errorCode: string };
      ensureEqual([refused.status, errorCode, refused.headers.get('transient-error')], [409, '704', 'true'], 'status, errorCode and Transient-Error');
      await charge.release();
      ensureEqual((await answer).status, 201, 'the first is answered');
      await ensureRuns(charge, 1);
    },
  },
];
