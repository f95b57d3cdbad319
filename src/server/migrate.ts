import { readFile } from 'node:fs/promises';
import { aName, checkKind, checkOptions, oneOf, type Kinds } from '../checks.js';
import { aDatabase } from '../database-clients.js';
import type { SqlDatabase, SqlExecutor } from '../sql/database.js';

/** A database that has a schema of ours. */
export type SchemaDialect = 'postgres' | 'mysql' | 'sqlite';

export interface MigrateOptions {
  /** Name of the table, as given to the store. @default 'idempotency_keys' */
  readonly table?: string | undefined;
}

const DIALECT = oneOf('postgres', 'mysql', 'sqlite');
const KINDS: Kinds<MigrateOptions> = { table: aName };

const TABLE = 'idempotency_keys';
const NAME = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$/;

/** Of all migrations of ours at once; two CREATE TABLE IF NOT EXISTS at the same moment can fail with a unique violation. */
const MIGRATION_LOCK = 7_264_893_105_771_201n;

const withoutSchema = (name: string): string => name.slice(name.indexOf('.') + 1);

/** As the stores write it: a name of one's own may have capitals in it, or be a word of SQL. */
const quoted = (name: string, dialect: SchemaDialect): string => {
  const quote = dialect === 'mysql' ? '`' : '"';
  return name.split('.').map(part => quote + part + quote).join('.');
};

/**
 * The schema of the dedup table as SQL, from the files that the package ships in `schema/`.
 *
 * @throws TypeError for a dialect that there is none of, and for what is no name of a table
 */
export const schemaOf = async (dialect: SchemaDialect, options: MigrateOptions = {}): Promise<string> => {
  checkKind('The dialect of the schema', dialect, DIALECT);
  checkOptions(options, KINDS, { of: 'migrate' });
  const { table = TABLE } = options;
  if (!NAME.test(table)) throw new TypeError(`"${table}" is not a name for a table. Use letters, digits and _, as in ${TABLE} or shop.${TABLE}.`);
  const text = await readFile(new URL(`../../schema/${dialect}.sql`, import.meta.url), 'utf8');
  if (table === TABLE) return text;
  // The name of an index belongs to the schema of its table and cannot be written with it.
  return text.replaceAll(/(INDEX IF NOT EXISTS )?\bidempotency_keys(\w*)/g, (_match, index: string | undefined, suffix: string) =>
    index === undefined ? quoted(table + suffix, dialect) : index + quoted(withoutSchema(table) + suffix, dialect));
};

const statementsOf = (text: string): string[] =>
  text
    .replaceAll(/--.*$/gm, '')
    .split(';')
    .map(statement => statement.trim())
    .filter(statement => statement !== '');

const runAll = async (on: SqlExecutor, statements: readonly string[]): Promise<void> => {
  for (const statement of statements) await on.query(statement);
};

const MADE = /^CREATE (?:TABLE|INDEX) IF NOT EXISTS (\S+)(?: ON (?:(\S+)\.)?)?/;

/** Whether PostgreSQL has what a statement makes. IF NOT EXISTS locks the table before it looks, and all claims wait behind a lock that waits. */
const isThere = async (on: SqlExecutor, statement: string): Promise<boolean> => {
  const [, name, schema] = MADE.exec(statement) ?? [];
  const { rows } = await on.query('SELECT to_regclass($1) IS NOT NULL AS there', [schema === undefined ? `${name}` : `${schema}.${name}`]);
  return rows[0]?.['there'] === true;
};

/**
 * Makes the tables that a SQL dedup store needs, where they are not there. It may be called at every start, by many
 * processes at once, and while others serve. If your deployments have migrations of their own, take the SQL of `schemaOf` into them instead.
 *
 * @throws TypeError for what is no database, and as `schemaOf` does
 * @example await migrate(fromPg(pool), 'postgres');
 */
export const migrate = async (database: SqlDatabase, dialect: SchemaDialect, options: MigrateOptions = {}): Promise<void> => {
  checkKind('migrate: the database', database, aDatabase);
  const statements = statementsOf(await schemaOf(dialect, options));
  if (dialect !== 'postgres') return runAll(database, statements);
  return database.transaction(async on => {
    await on.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    for (const statement of statements) {
      if (!(await isThere(on, statement))) await on.query(statement);
    }
  });
};
