import { aName, checkKind, checkOptions, withMethods, type Kind, type Kinds } from '../../../checks.js';
import { aDatabase } from '../../../database-clients.js';
import { anIsolation } from '../../../sql/isolation.js';

/** Options that all stores on a server have. */
export const SERVER_KINDS: { readonly [Name in 'table' | 'isolation' | 'control']: Kind } = {
  table: aName,
  isolation: anIsolation,
  control: withMethods('a database of samekey/sql was expected, such as fromPg(pool) makes', 'query'),
};

/** What a store is made of. */
export interface Ingredients<Options extends object> {
  readonly database: unknown;
  readonly options: unknown;
  readonly kinds: Kinds<Options>;
}

/** @throws TypeError for what no store can be made of */
export const checkIngredients = <Options extends object>(of: string, { database, options, kinds }: Ingredients<Options>): void => {
  checkKind(`${of}: the database`, database, aDatabase);
  checkOptions(options, kinds, { of });
};
