import createKnex from 'knex';
import { Kysely, MysqlDialect, sql } from 'kysely';
import { createPool } from 'mysql2';
import { fromKnex, fromKysely } from '../../src/sql/index.js';
import { bePatient } from '../support/patience.js';
import { describeMysqlLibrary, MOST } from './support/mysql-library.js';

bePatient();

describeMysqlLibrary('Kysely', place => {
  const kysely = new Kysely<object>({ dialect: new MysqlDialect({ pool: createPool({ ...place, connectionLimit: MOST }) }) });
  return {
    database: fromKysely(kysely),
    close: () => kysely.destroy(),
  };
}, (tx, label, attempt) => sql`INSERT INTO charges (label, attempt) VALUES (${label}, ${attempt})`.execute(tx));

describeMysqlLibrary('Knex', ({ host, port, user, password, database }) => {
  const knex = createKnex({ client: 'mysql2', connection: { host, port, user, password, database }, pool: { min: 0, max: MOST } });
  return {
    database: fromKnex(knex),
    close: () => knex.destroy(),
  };
}, async (tx, label, attempt) => tx.raw('INSERT INTO charges (label, attempt) VALUES (?, ?)', [label, attempt]));
