import { expect } from 'vitest';
import { asNumber, type SqlDatabase } from '../../src/sql/index.js';
import type { Door } from './engine-checks.js';

/** A resource `/orders/1` with the columns status and price, behind a door, and the table it is kept in. */
export interface ResourceStage {
  readonly door: Door;
  readonly url: string;
  readonly database: SqlDatabase;
}

export interface ByDesignCheck {
  readonly name: string;
  run(stage: ResourceStage): Promise<void>;
}

interface Asked {
  readonly status: number;
  readonly etag: string;
}

const asking = ({ door, url }: ResourceStage) => async (method: string, body?: object, ifMatch?: string): Promise<Asked> => {
  const headers = { 'content-type': 'application/json', ...(ifMatch !== undefined && { 'if-match': ifMatch }) };
  const response = await door(new Request(url, { method, headers, ...(body && { body: JSON.stringify(body) }) }));
  return { status: response.status, etag: response.headers.get('etag') ?? '' };
};

/** Every row there is, as state and version. */
const table = async ({ database }: ResourceStage): Promise<readonly (readonly unknown[])[]> =>
  (await database.query('SELECT status, version FROM orders')).rows.map(({ status, version }) => [status, asNumber(version)]);

const versionOf = ({ etag }: Asked): number => Number(etag.slice(1, -1));

const NEW = { status: 'new', price: 5 };
const PAID = { status: 'paid', price: 5 };

export const byDesignChecks: readonly ByDesignCheck[] = [
  {
    name: 'check 6: the same PUT twice is one row and one version, and the next content advances the version once',
    async run(stage) {
      const ask = asking(stage);
      const made = await ask('PUT', NEW);
      expect((await ask('PUT', NEW)).etag).toBe(made.etag);
      expect(await table(stage)).toEqual([['new', versionOf(made)]]);
      const paid = await ask('PUT', PAID);
      expect(await ask('PUT', PAID)).toEqual(paid);
      expect(await table(stage)).toEqual([['paid', versionOf(made) + 1]]);
    },
  },
  {
    name: 'check 6: the same conditional write twice advances the version once: the stale If-Match is rejected, not applied again',
    async run(stage) {
      const ask = asking(stage);
      const made = await ask('PUT', NEW);
      const paid = await ask('PATCH', { status: 'paid' }, made.etag);
      const repeat = await ask('PATCH', { status: 'paid' }, made.etag);
      const late = await ask('PUT', { status: 'cancelled', price: 0 }, made.etag);
      expect([paid.status, repeat.status, late.status]).toEqual([204, 412, 412]);
      expect(await table(stage)).toEqual([['paid', versionOf(made) + 1]]);
    },
  },
  {
    name: 'check 6: DELETE twice is success twice',
    async run(stage) {
      const ask = asking(stage);
      await ask('PUT', NEW);
      expect([(await ask('DELETE')).status, (await ask('DELETE')).status]).toEqual([204, 204]);
      expect(await table(stage)).toEqual([]);
    },
  },
  {
    name: 'check 6: of parallel writes with one If-Match one is applied',
    async run(stage) {
      const ask = asking(stage);
      const made = await ask('PUT', NEW);
      const answers = await Promise.all(Array.from({ length: 20 }, (_, writer) => ask('PUT', { status: `writer ${writer}`, price: 1 }, made.etag)));
      expect(answers.filter(({ status }) => status === 204)).toHaveLength(1);
      expect(answers.filter(({ status }) => status === 412)).toHaveLength(19);
      expect(await table(stage)).toEqual([[`writer ${answers.findIndex(({ status }) => status === 204)}`, versionOf(made) + 1]]);
    },
  },
];
