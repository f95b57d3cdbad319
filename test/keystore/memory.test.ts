import { describe, expect, it } from 'vitest';
import { memoryBacking, memoryKeyStore } from '../../src/keystore/memory.js';
import type { StoredHead } from '../../src/keystore/keystore.js';
import { describeKeyStore } from '../../src/testing/index.js';
import { begin, headOf, refOf } from '../../src/testing/keystore/subject.js';

describeKeyStore({ describe, it }, 'memoryKeyStore', () => {
  const backing = memoryBacking();
  return {
    open: () => memoryKeyStore({ backing }),
    spoil: async ref => {
      const [key, head] = [...backing.heads].find(([, { scope, id }]) => scope === ref.scope && id === ref.id) as [string, StoredHead];
      const spoiled = { ...head, unreadable: 'spoiled by the test' };
      backing.heads.set(key, spoiled);
      backing.shelves.open.splice(backing.shelves.open.indexOf(head), 1, spoiled);
    },
  };
});

describe('memoryKeyStore', () => {
  it('shares nothing when it has no backing', async () => {
    const [one, other] = [memoryKeyStore(), memoryKeyStore()];
    await one.commit([begin(headOf(refOf('name:a')))]);
    expect(await other.get(refOf('name:a'))).toBeUndefined();
  });

  it('shows an owner as dead when its page crashed', async () => {
    const backing = memoryBacking();
    const [crashed, survivor] = [memoryKeyStore({ backing }), memoryKeyStore({ backing })];
    const owner = await crashed.owner();
    backing.owners.delete(owner);
    expect(await survivor.liveness(owner)).toBe('dead');
  });
});
