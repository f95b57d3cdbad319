import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/mysql2';
import { createPool } from 'mysql2/promise';
import { fromDrizzle } from '../../../src/sql/index.js';
import { bePatient } from '../../support/patience.js';
import { describeMysqlLibrary, MOST } from '../support/mysql-library.js';

bePatient();

describeMysqlLibrary('Drizzle', place => {
  const pool = createPool({ ...place, connectionLimit: MOST });
  return {
    database: fromDrizzle(drizzle({ client: pool }), sql),
    close: () => pool.end(),
  };
}, (tx, label, attempt) => tx.execute(sql`INSERT INTO charges (label, attempt) VALUES (${label}, ${attempt})`));
