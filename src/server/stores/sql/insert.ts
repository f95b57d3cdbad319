import { join, raw, sql, type Statement } from '../../../sql/statement.js';
import type { Assignments } from './dialect.js';

/** The names of a row's columns. */
export const columnList = (row: Assignments): Statement => raw(Object.keys(row).join(', '));

/** What every dialect's INSERT begins with. */
export const insertInto = (table: Statement, row: Assignments): Statement =>
  sql`INSERT INTO ${table} (${columnList(row)}) VALUES (${join(Object.values(row))})`;
