import { join, raw, sql, type Statement } from '../../../sql/statement.js';
import type { Assignments } from './dialect.js';

/** What every dialect's INSERT begins with. */
export const insertInto = (table: Statement, row: Assignments): Statement =>
  sql`INSERT INTO ${table} (${raw(Object.keys(row).join(', '))}) VALUES (${join(Object.values(row))})`;
