import { ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import { codeOf, ensureRuns, ensureSame, ensureStatus } from './common.js';

/** Records that cannot be read or written. */
export const records: readonly Fact[] = [
  {
    id: '41a',
    name: 'a claim whose acknowledgement got lost goes on as the owner',
    needs: ['store claim-lost'],
    async run({ scenario, server, until }) {
      const charge = scenario();
      await server.fail?.('claim-lost');
      const first = await until(charge.send());
      ensureEqual(first.status, 201, 'the request is answered');
      ensureSame(await charge.send(), first);
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '42a',
    name: 'an end that could not be written at first is written',
    needs: ['store settle-refused'],
    async run({ scenario, server, until }) {
      const charge = scenario();
      await server.fail?.('settle-refused');
      const first = await until(charge.send());
      ensureEqual(first.status, 201, 'the request is answered');
      ensureSame(await charge.send(), first);
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '42b',
    name: 'an end whose acknowledgement got lost is written once',
    needs: ['store settle-lost'],
    async run({ scenario, server, until }) {
      const charge = scenario();
      await server.fail?.('settle-lost');
      const first = await until(charge.send());
      ensureEqual(first.status, 201, 'the request is answered');
      ensureSame(await charge.send(), first);
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '42c',
    name: 'an end that can never be written is answered, and never runs again',
    needs: ['store settle-down', 'second server', 'time'],
    unless: ['tx'],
    async run(stage) {
      const charge = stage.scenario();
      await stage.server.fail?.('settle-down');
      ensureEqual((await stage.until(charge.send())).status, 201, 'its client gets the answer');
      await stage.advance(stage.lease + 1);
      ensureStatus(await charge.send({ to: await stage.open() }), { words: stage.words, is: ['indeterminate'] }, 'a repeat');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '42d',
    name: 'such an answer says that it is not recorded',
    needs: ['store settle-down'],
    unless: ['tx'],
    wording: true,
    async run({ scenario, server, until }) {
      await server.fail?.('settle-down');
      ensureEqual((await until(scenario().send())).headers.get('idempotency-status'), 'unrecorded', 'Idempotency-Status');
    },
  },
  {
    id: '49a',
    name: 'records that cannot be reached let nothing run',
    needs: ['store down'],
    async run({ scenario, server, until, words }) {
      const charge = scenario();
      await server.fail?.('down');
      const refused = await until(charge.send());
      ensureStatus(refused, { words, is: ['unavailable'] }, 'the request');
      await ensureRuns(charge, 0);
    },
  },
  {
    id: '49b',
    name: 'the refusal says that nothing was executed, and when to come back',
    needs: ['store down'],
    wording: true,
    async run({ scenario, server, until }) {
      await server.fail?.('down');
      const refused = await until(scenario().send());
      ensureEqual([refused.status, refused.headers.get('retry-after'), codeOf(refused)], [503, '1', 'idempotency_store_unavailable'], 'status, Retry-After and code');
    },
  },
  {
    id: '49c',
    name: 'a server that would rather run twice than not at all runs the whole request, and says that it was not protected',
    needs: ['store down'],
    config: { failOpen: true },
    async run({ scenario, server, until }) {
      await server.fail?.('down');
      const answer = await until(scenario({ echo: true }).send({ body: '{"amount":4200}' }));
      ensureEqual([answer.status, answer.json, answer.headers.get('idempotency-status')], [201, { amount: 4200 }, 'unrecorded'], 'status, echo and Idempotency-Status');
    },
  },
];
