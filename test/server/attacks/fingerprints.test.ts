import { describe, expect, it } from 'vitest';
import { hmacFingerprint, type DedupOptions, type FingerprintInput } from '../../../src/server/index.js';
import { memoryDedupStore } from '../../../src/server/stores/memory.js';
import { manualClock } from '../../support/manual-clock.js';
import { codeOf, endpointOf, isReplay } from '../support/endpoint.js';

const textOf = ({ body }: FingerprintInput): string => new TextDecoder().decode(body);
const recipientOf = (input: FingerprintInput): string => (JSON.parse(textOf(input)) as { to: string }).to;

/** Fingerprints that an application may come up with. */
const OWN: Record<string, NonNullable<DedupOptions['fingerprint']>> = {
  'without a colon': textOf,
  'of one letter': input => recipientOf(input).slice(0, 1),
  'with what differs before its last colon': input => `${recipientOf(input)}:4200`,
  'with what differs before its first colon': input => `${recipientOf(input)}:hmac-sha256:4200`,
  'with a version, and what differs before a colon': input => `v2:${recipientOf(input)}:4200`,
  'that looks like a header': input => `none:${recipientOf(input)}`,
  'under a secret, with what differs before its first colon': hmacFingerprint('a secret of thirty-two bytes, say', input => `${recipientOf(input)}:4200`),
};

describe('a fingerprint of the application’s own is compared as a whole', () => {
  it.each(Object.keys(OWN))('%s', async name => {
    const clock = manualClock();
    const endpoint = endpointOf({ store: memoryDedupStore({ clock }), clock }, undefined, { fingerprint: OWN[name] });
    await endpoint.send({ key: 'k', body: '{"to":"alice"}' });
    const other = await endpoint.send({ key: 'k', body: '{"to":"mallory"}' });
    expect([other.status, isReplay(other), await codeOf(other)]).toEqual([422, false, 'idempotency_key_reused']);
    expect([isReplay(await endpoint.send({ key: 'k', body: '{"to":"alice"}' })), endpoint.runs]).toEqual([true, 1]);
  });
});
