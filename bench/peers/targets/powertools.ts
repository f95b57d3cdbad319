import { createServer } from 'node:http';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { toNodeListener } from '../../../src/server/adapters/node.js';
import { scenarioGuard, TENANT_HEADER, type Scenarios } from '../../../src/testing/conformance.js';
import { listen } from '../../../test/server/support/serve-node.js';
import { peerTarget, type PeerTarget } from '../peer.js';
import { MemoryPersistenceLayer, memoryTable, type Table } from './powertools-records.js';

const EXPIRES_S = 4;

/** ms that the function may run, which is what its lease is. */
const TIMEOUT_MS = 2_000;

/** The event and the result of a function behind an HTTP gateway, as far as they matter here. */
interface ProxyEvent {
  readonly httpMethod: string;
  readonly path: string;
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface ProxyResult {
  readonly statusCode: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Base64, as binary answers of such functions are. */
  readonly body: string | null;
}

const STATUSES: Readonly<Record<string, number>> = {
  IdempotencyKeyError: 400,
  IdempotencyValidationError: 422,
  IdempotencyAlreadyInProgressError: 409,
  IdempotencyPersistenceLayerError: 503,
};

const eventOf = async (request: Request): Promise<ProxyEvent> => {
  const { pathname, searchParams } = new URL(request.url);
  const bytes = Buffer.from(await request.clone().arrayBuffer());
  const isText = bytes.equals(Buffer.from(bytes.toString()));
  return { httpMethod: request.method, path: pathname, query: [...searchParams], headers: Object.fromEntries(request.headers), body: bytes.toString(isText ? 'utf8' : 'base64') };
};

const resultOf = async (response: Response): Promise<ProxyResult> => ({
  statusCode: response.status,
  headers: [...response.headers],
  body: response.body && Buffer.from(await response.arrayBuffer()).toString('base64'),
});

const responseOf = ({ statusCode, headers, body }: ProxyResult): Response =>
  new Response(body === null ? null : Buffer.from(body, 'base64'), { status: statusCode, headers: headers.map(([name, value]): [string, string] => [name, value]) });

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

const configFor = ({ body, headers }: ProxyEvent): IdempotencyConfig => {
  const parsed = headers['content-type']?.includes('json') && isJson(body) ? 'powertools_json(body)' : 'body';
  return new IdempotencyConfig({
    eventKeyJmesPath: 'headers."idempotency-key"',
    payloadValidationJmesPath: `[httpMethod, path, query, ${parsed}]`,
    throwOnNoIdempotencyKey: true,
    expiresAfterSeconds: EXPIRES_S,
    responseHook: response => {
      const { headers: stored, ...result } = response as unknown as ProxyResult;
      return { ...result, headers: [...stored, ['Idempotent-Replayed', 'true']] } as unknown as ReturnType<NonNullable<ConstructorParameters<typeof IdempotencyConfig>[0]['responseHook']>>;
    },
  });
};

/** What stands behind an error of the records, where it is not about them. */
const reasonOf = (error: Error): Error => (error.cause instanceof Error && error.cause.name in STATUSES ? error.cause : error);

const handle = async (table: Table, scenarios: Scenarios, request: Request): Promise<Response> => {
  if (!['POST', 'PATCH'].includes(request.method)) return scenarios.handler(request);
  const event = await eventOf(request);
  const config = configFor(event);
  const end = Date.now() + TIMEOUT_MS;
  config.registerLambdaContext({ getRemainingTimeInMillis: () => end - Date.now() } as Parameters<IdempotencyConfig['registerLambdaContext']>[0]);
  const run = makeIdempotent(async (_event: ProxyEvent) => resultOf(await scenarios.handler(request)), {
    persistenceStore: new MemoryPersistenceLayer(table),
    keyPrefix: JSON.stringify([event.headers[TENANT_HEADER], event.path.split('/')[1]]),
    config,
  });
  try {
    return responseOf(await run(event));
  } catch (error) {
    const { name } = reasonOf(error as Error);
    const status = STATUSES[name] ?? 500;
    return Response.json({ error: name }, { status, headers: status === 409 ? { 'retry-after': '1' } : {} });
  }
};

const NO_STREAM = 'the result of such a function is one object, not a stream';

export const powertools: PeerTarget = peerTarget<Table>({
  configured: `makeIdempotent around a function with proxy events (method, path, query, headers, body) and results (status, all headers, body), POST and PATCH only; eventKeyJmesPath: the key header, payloadValidationJmesPath: method, path, query and parsed body, throwOnNoIdempotencyKey, expiresAfterSeconds ${EXPIRES_S}, a function timeout of ${TIMEOUT_MS} ms, keyPrefix: tenant and endpoint, responseHook: a replay marker; errors answered with 400, 409 and Retry-After, 422, 503; a persistence layer in memory on the conditions of its DynamoDB layer`,
  traits: {
    name: 'Powertools',
    words: {},
    abilities: ['time', 'cut off', 'tenants', 'endpoints'],
    cannot: { announce: 'handlers cannot say when an effect begins', cors: 'leaves CORS to the gateway', 'config required': 'not tried: the function is one for requests with a key' },
    skip: ['53a', '53b', '53c'].map(fact => ({ case: fact, reason: NO_STREAM })),
    lease: TIMEOUT_MS,
    retention: EXPIRES_S * 1_000,
  },
  createRecords: memoryTable,
  async open(table, scenarios) {
    const listener = toNodeListener(async request => scenarioGuard(request) ?? handle(table, scenarios, request), { onError: () => {} });
    const server = createServer(listener);
    const { close, ...door } = await listen(server);
    return { ...door, close: async () => close?.(), shutdown: () => new Promise<void>(resolve => server.close(() => resolve())) };
  },
});
