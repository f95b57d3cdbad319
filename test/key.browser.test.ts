import { expect, test } from 'vitest';
import { deriveKey, digest } from '../src/key.js';

// The expected values come from other implementations (Python's uuid and hashlib), not from this one.

test('a derived key is the same in every browser', () => {
  expect(deriveKey('https://api.test', ['default', 'shop', 'order:1', '1'])).toBe('f7d9a0a8-bb5f-576c-ae71-c80d5ee59dde');
});

test('a digest is the same in every browser', async () => {
  const bytes = new TextEncoder().encode('{"amount":4200}');
  expect(await digest(bytes)).toBe('sha256:c6a6831ac1abd02d15c339d34514c7a2171bdf61f88762075e8af6ddb70764c8');
});
