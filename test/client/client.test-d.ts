import ky, { type KyInstance, type ResponsePromise } from 'ky';
import { expectTypeOf } from 'expect-type';
import {
  createClient, deviceScope, isSamekeyError, operationOf, type Client, type ErrorCode, type KeyStore, type OperationInfo, type OperationPendingError, type OperationRecord,
} from '../../src/index.js';
import { memoryKeyStore } from '../../src/keystore/memory.js';

declare const api: Client;

// A client goes wherever ky or fetch is asked for.
expectTypeOf(api).toExtend<KyInstance>();
expectTypeOf(api.fetch).toExtend<typeof fetch>();
expectTypeOf(api.extend({ headers: { a: 'b' } })).toEqualTypeOf<Client>();
expectTypeOf(api.create()).toEqualTypeOf<KyInstance>();
expectTypeOf(api.stop).toEqualTypeOf(ky.stop);

// Verbs infer as ky's do, and take samekey's options.
expectTypeOf(api.post('x', { operation: 'o', json: {} })).toEqualTypeOf<ResponsePromise<unknown>>();
expectTypeOf(api.post('x').json<{ id: string }>()).resolves.toEqualTypeOf<{ id: string }>();
expectTypeOf(api.put('x', { ifMatch: '"1"' })).toEqualTypeOf<ResponsePromise<unknown>>();
api.post('x', { operation: false, again: true, since: Date.now(), scope: 'u', accept: () => 'succeeded' });
// @ts-expect-error an operation is named by a string, or turned off
api.post('x', { operation: 42 });
// @ts-expect-error accept answers in words of the contract
api.post('x', { accept: () => 'maybe' });

// A name cannot be a default of every call.
// @ts-expect-error a string would make every call the same operation
createClient({ prefix: 'https://a.test', operation: 'order:1' });
createClient({ prefix: 'https://a.test', operation: request => (request.url.endsWith('/login') ? false : undefined) });
createClient({ prefix: 'https://a.test', scope: deviceScope, keystore: memoryKeyStore(), retry: { limit: 3 }, timeout: false });
expectTypeOf(memoryKeyStore()).toExtend<KeyStore>();

// Functions of the caller may be asynchronous.
createClient({
  prefix: 'https://a.test',
  onInDoubt: async operation => {
    await Promise.resolve(operation.name);
    // TypeScript 7.0 widens the one literal that an async function returns; two of them, or 6.x, need no `as const`.
    return 'unknown' as const;
  },
  accept: async response => ((await response.text()) === '' ? 'rejected' : undefined),
});

// Errors narrow by code.
declare const error: unknown;
if (isSamekeyError(error, 'OPERATION_PENDING')) {
  expectTypeOf(error).toEqualTypeOf<OperationPendingError>();
  expectTypeOf(error.nextAttemptAt).toEqualTypeOf<number | undefined>();
}
if (isSamekeyError(error)) {
  expectTypeOf(error.operation).toEqualTypeOf<OperationInfo | undefined>();
  expectTypeOf(error.phase).toEqualTypeOf<'not-sent' | 'unknown' | 'answered'>();
}
if (isSamekeyError(error, 'TOO_EARLY')) expectTypeOf(error.code).toEqualTypeOf<'TOO_EARLY'>();
// @ts-expect-error codes are a closed set
isSamekeyError(error, 'SOMETHING');
expectTypeOf<'IN_DOUBT'>().toExtend<ErrorCode>();

expectTypeOf(operationOf(api.post('x'))).toEqualTypeOf<OperationInfo | undefined>();
expectTypeOf(api.operations.get('o')).resolves.toEqualTypeOf<OperationRecord | undefined>();
expectTypeOf(api.operations.result({ key: 'k' })).resolves.toEqualTypeOf<Response>();
expectTypeOf(api.operations.key('o')).resolves.toEqualTypeOf<string>();
// @ts-expect-error a person who reconciles knows
void api.operations.reconcile('o', 'unknown');
