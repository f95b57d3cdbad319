import type { SqlDatabase, SqlExecutor, SqlValue } from '../../../src/sql/index.js';

export interface Sent {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** A database that notes what is sent to it; `before` may hold a statement up, or refuse it. */
export const spiedDatabase = <Tx>(database: SqlDatabase<Tx>, before: (sent: Sent) => Promise<void> | void): SqlDatabase<Tx> => {
  const on = (sql: SqlExecutor): SqlExecutor => ({
    async query(text, values = []) {
      await before({ text, values });
      return sql.query(text, values);
    },
  });
  return { ...on(database), transaction: (work, options) => database.transaction((sql, tx) => work(on(sql), tx), options) };
};
