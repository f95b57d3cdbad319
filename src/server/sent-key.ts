import type { BodyField, Profile } from '../profiles/profile.js';
import { readRequestBody } from './bytes.js';
import { checkKey, invalid, MISSING, readKey, type SentKey } from './key-header.js';

/** Where the key of a request is looked for. */
export interface KeyPlace {
  readonly profile: Profile;
  /** Takes the quoted form only, as the draft says. */
  readonly strict: boolean;
  /** Bytes of a body that is read for its key. */
  readonly maxRequestBytes: number;
}

/** The key in a body. A member that holds no string is no key, and not overlooked either. */
const readBodyKey = (profile: Profile, field: BodyField, body: Uint8Array): SentKey => {
  try {
    const key = field.read(body);
    return key === undefined ? MISSING : checkKey(key, profile);
  } catch (error) {
    return invalid((error as Error).message);
  }
};

/** The key of a request, whose body stays readable. `too-large`: it would be in a body larger than is accepted. */
export const readSentKey = async ({ profile, strict, maxRequestBytes }: KeyPlace, request: Request): Promise<SentKey | { readonly kind: 'too-large' }> => {
  const { bodyField } = profile;
  if (!bodyField) return readKey(profile, request.headers, strict);
  const body = await readRequestBody(request.clone(), maxRequestBytes);
  return body ? readBodyKey(profile, bodyField, body) : { kind: 'too-large' };
};
