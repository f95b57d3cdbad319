import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../../../src/clock.js';
import { createDedup } from '../../../src/server/index.js';
import { migrate } from '../../../src/server/migrate.js';
import { sqliteDedupStore } from '../../../src/server/stores/sqlite.js';
import { fromNodeSqlite } from '../../../src/sql/index.js';
import { crowd } from './crowd.js';

/**
 * One of several processes that send the same request, `count` times each, to handlers on one SQLite file, which they make
 * at the same time. It says `ready`, waits for a line, and then says what became of its requests.
 *
 * Usage: sqlite-racer.ts <path> <count>
 */
const [path = '', count = '0'] = process.argv.slice(2);

/** Long enough for another process to come in, were it let in. ms */
const STAY = 20;

console.log('ready');
await once(process.stdin, 'data');
const sqlite = new DatabaseSync(path);
const database = fromNodeSqlite(sqlite);
await migrate(database, 'sqlite');
const dedup = createDedup({ store: sqliteDedupStore(database), scope: () => 'acme' });

const outcome = await crowd([dedup], Number(count), async (_request, context) => {
  // Fails when somebody else is inside, in whatever process.
  writeFileSync(`${path}.inside`, '', { flag: 'wx' });
  await systemClock.sleep(STAY);
  rmSync(`${path}.inside`);
  const tx = await context.transaction();
  tx.exec('CREATE TABLE IF NOT EXISTS charges (label TEXT)');
  tx.prepare('INSERT INTO charges VALUES (?)').run(context.key ?? '');
  return Response.json({ charged: true }, { status: 201 });
});
console.log(`outcome ${JSON.stringify(outcome)}`);
sqlite.close();
process.exit();
