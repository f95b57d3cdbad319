import { expect } from 'vitest';
import type { SqlExecutor } from '../../../src/sql/index.js';

/** Of a library on PostgreSQL that has placeholders of its own. */
export const placeholdersFact = async (database: SqlExecutor): Promise<void> => {
  const { rows } = await database.query(`SELECT $2::text AS b, $1::text AS a, $2::text || '?$1' AS again, '{"a":1}'::jsonb ? 'a' AS "has ?", $$?$1$$ AS quoted -- $3 ?`, ['A', 'B']);
  expect(rows).toEqual([{ b: 'B', a: 'A', again: 'B?$1', 'has ?': true, quoted: '?$1' }]);
  await expect(database.query('SELECT $1::text', ['A', 'B'])).rejects.toThrow('placeholders for 1 values, but 2 came');
};
