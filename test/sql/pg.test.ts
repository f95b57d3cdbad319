import { Pool, type PoolClient } from 'pg';
import { fromPg } from '../../src/sql/index.js';
import { createPostgresDatabase } from '../support/sql-servers.js';
import { cutPostgres } from './cut.js';
import { POOL_SIZE } from './subject.js';
import { describeSqlDatabase } from './suite.js';

describeSqlDatabase<PoolClient>('fromPg', async () => {
  const place = await createPostgresDatabase();
  const pool = new Pool({ ...place, max: POOL_SIZE });
  pool.on('error', () => {});
  const subject = {
    database: fromPg(pool),
    dialect: 'postgres',
    through: (client: PoolClient, text: string) => client.query(text),
    lent: () => pool.totalCount - pool.idleCount,
    cut: cutPostgres(place),
  } as const;
  const close = async (): Promise<void> => {
    await pool.end();
    await place.drop();
  };
  return { subject, close };
});
