import { IdempotencyItemAlreadyExistsError, IdempotencyItemNotFoundError, IdempotencyRecordStatus } from '@aws-lambda-powertools/idempotency';
import { BasePersistenceLayer, IdempotencyRecord } from '@aws-lambda-powertools/idempotency/persistence';

type Item = ConstructorParameters<typeof IdempotencyRecord>[0];

/** A table in memory: a conditional put, an update, a read, a delete. */
export interface Table {
  get(key: string): Promise<Item | undefined>;
  /** Puts the item if what is there may be replaced; answers with what stands in the way. */
  putIf(item: Item, mayReplace: (there: Item) => boolean): Promise<Item | undefined>;
  set(item: Item): Promise<void>;
  delete(key: string): Promise<void>;
}

export const memoryTable = (): Table => {
  const items = new Map<string, Item>();
  return {
    get: async key => items.get(key),
    async putIf(item, mayReplace) {
      const there = items.get(item.idempotencyKey);
      if (there && !mayReplace(there)) return there;
      items.set(item.idempotencyKey, item);
      return undefined;
    },
    set: async item => void items.set(item.idempotencyKey, structuredClone(item)),
    delete: async key => void items.delete(key),
  };
};

const itemOf = (record: IdempotencyRecord): Item => ({
  idempotencyKey: record.idempotencyKey,
  status: record.getStatus(),
  ...(record.expiryTimestamp !== undefined && { expiryTimestamp: record.expiryTimestamp }),
  ...(record.inProgressExpiryTimestamp !== undefined && { inProgressExpiryTimestamp: record.inProgressExpiryTimestamp }),
  ...(record.payloadHash !== undefined && { payloadHash: record.payloadHash }),
  ...(record.responseData !== undefined && { responseData: record.responseData }),
});

/** On the conditions of the library's own layer for DynamoDB: expired, or in progress for longer than the function may run. */
const mayReplace = ({ expiryTimestamp = Infinity, status, inProgressExpiryTimestamp = Infinity }: Item): boolean =>
  expiryTimestamp < Date.now() / 1000 || (status === IdempotencyRecordStatus.INPROGRESS && inProgressExpiryTimestamp < Date.now());

/** A persistence layer of one's own, as the README says that it is made: by extending the base class. */
export class MemoryPersistenceLayer extends BasePersistenceLayer {
  readonly #table: Table;

  constructor(table: Table) {
    super();
    this.#table = table;
  }

  protected override async _putRecord(record: IdempotencyRecord): Promise<void> {
    const there = await this.#table.putIf(itemOf(record), mayReplace);
    if (there) throw new IdempotencyItemAlreadyExistsError('The key exists.', new IdempotencyRecord(there));
  }

  protected override async _getRecord(key: string): Promise<IdempotencyRecord> {
    const item = await this.#table.get(key);
    if (!item) throw new IdempotencyItemNotFoundError('The key does not exist.');
    return new IdempotencyRecord(item);
  }

  protected override async _updateRecord(record: IdempotencyRecord): Promise<void> {
    const there = await this.#table.get(record.idempotencyKey);
    await this.#table.set({ ...there, ...itemOf(record) });
  }

  protected override async _deleteRecord({ idempotencyKey }: IdempotencyRecord): Promise<void> {
    await this.#table.delete(idempotencyKey);
  }
}
