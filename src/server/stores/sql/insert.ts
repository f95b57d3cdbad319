import { join, raw, sql, type Statement } from '../../../sql/statement.js';
import type { Assignments } from './dialect.js';

/** What every dialect's INSERT begins with. */
export const insertInto = (table: Statement, row: Assignments): Statement =>
  sql`INSERT INTO ${table} (${raw(Object.keys(row).join(', '))}) VALUES (${join(Object.values(row))})`;

/** `name = value, …` for each column, the value in the words of the dialect. */
export const setEach = (row: Assignments, value: (name: string) => string): Statement => raw(Object.keys(row).map(name => `${name} = ${value(name)}`).join(', '));
