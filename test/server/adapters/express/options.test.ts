import { expect, it } from 'vitest';
import { idempotent } from '../../../../src/server/adapters/express.js';
import { dedupOf } from '../serving.js';

/** As a caller without types may call it. */
const call = (...values: unknown[]) => (): unknown => Reflect.apply(idempotent, undefined, values);

it.each([
  [[], 'The dedup that idempotent() was given is undefined; what createDedup({ store, scope }) makes was expected.'],
  [[dedupOf()], 'The options of idempotent are undefined; an object was expected, with name in it.'],
  [[dedupOf(), 'charge'], 'The options of idempotent are "charge"; an object was expected, with name in it.'],
  [[dedupOf(), {}], 'idempotent: name is undefined; a text that is not empty was expected.'],
  [[dedupOf(), { name: '' }], 'idempotent: name is ""; a text that is not empty was expected.'],
  [[dedupOf(), { name: 'charge', effect: 'marked' }], 'idempotent has no option "effect". Look for a misspelt word: it has name, effects.'],
])('Express: the middleware is refused where it is made, not at the first request: %#', (values, message) => {
  expect(call(...values)).toThrow(new TypeError(message));
});
