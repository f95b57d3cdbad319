import { fingerprint as fingerprintV1, type FingerprintInput } from '../fingerprint.js';
import { createHmac } from '../key.js';

type Fingerprint = (input: FingerprintInput) => string | Promise<string>;

/** Bytes. A secret that can be guessed protects nothing. */
const MIN_SECRET = 16;

const encoder = new TextEncoder();

/** The rule by which a fingerprint was made; one of the caller's own may not name it. */
const versionOf = (fingerprint: string): string => /^v\d+(?=:)/.exec(fingerprint)?.[0] ?? 'own';

/**
 * A fingerprint for tables that others can read: a plain hash of a body with few possible contents (an amount, a card's
 * last digits) gives it away to whoever tries them all; this one does not, without the secret.
 *
 * Rows written under another secret, or by another fingerprint, are not compared, so that changing the secret turns no
 * honest retry into reuse.
 *
 * @param secret - at least 16 random bytes, the same in all processes on one table; text counts as UTF-8
 * @param fingerprint - says what two requests must have in common. @default fingerprint
 * @throws TypeError for a shorter secret
 * @example createDedup({ store, scope, fingerprint: hmacFingerprint(process.env.FINGERPRINT_SECRET) })
 */
export const hmacFingerprint = (secret: string | Uint8Array<ArrayBuffer>, fingerprint: Fingerprint = fingerprintV1): ((input: FingerprintInput) => Promise<string>) => {
  const bytes = typeof secret === 'string' ? encoder.encode(secret) : Uint8Array.from(secret);
  if (bytes.length < MIN_SECRET) {
    throw new TypeError(`The secret has ${bytes.length} bytes; at least ${MIN_SECRET} random ones are needed. Make one: node -p "crypto.randomBytes(32).toString('hex')".`);
  }
  const hmac = createHmac(bytes);
  return async input => {
    const plain = await fingerprint(input);
    return `${versionOf(plain)}:${await hmac(encoder.encode(plain))}`;
  };
};
