import { describe, expect, it } from 'vitest';
import { adyen, azure, gocardless, ietf, paypal, square, stripe } from '../../src/profiles/index.js';
import { withCors } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { bePatient } from '../support/patience.js';
import { gate, keyOf, requestOf, serverOf, type Sent } from './support.js';

bePatient();

const KEY = keyOf('k');

/** What is in an answer, for one assertion. */
const all = async (response: Response, ...headers: string[]): Promise<unknown[]> => [response.status, await response.json(), ...headers.map(name => response.headers.get(name))];

/** An endpoint whose first run waits, and what a second request is told meanwhile. */
const whileRunning = async (profile: Parameters<typeof serverOf>[0]): Promise<Response> => {
  const { opened, open } = gate();
  const server = serverOf(profile, async () => opened.then(() => Response.json({}, { status: 201 })));
  const first = server.send({ key: KEY });
  await expect.poll(() => server.runs).toBe(1);
  const second = await server.send({ key: KEY });
  open();
  await first;
  return second;
};

describe('60: gocardless', () => {
  it('never repeats a create: 409 with the id of what is there, whatever the body', async () => {
    const server = serverOf(gocardless);
    expect((await server.send({ key: KEY })).status).toBe(201);
    for (const json of [{ amount: 4200 }, { amount: 1 }]) {
      const [status, body] = await all(await server.send({ key: KEY, json }));
      expect([status, body]).toEqual([409, {
        error: {
          type: 'invalid_state', code: 409, message: expect.any(String),
          errors: [{ reason: 'idempotent_creation_conflict', message: expect.any(String), links: { conflicting_resource_id: 'CH1' } }],
        },
      }]);
    }
    expect(server.runs).toBe(1);
  });

  it('keeps only successes: a failed create leaves its key free, for any body', async () => {
    const server = serverOf(gocardless, (_request, _context, run) => Response.json({ charges: { id: 'CH2' } }, { status: [422, 500, 201][run - 1] ?? 201 }));
    const statuses = [];
    for (const json of [{ amount: -1 }, { amount: 1 }, { amount: 2 }, { amount: 3 }]) statuses.push((await server.send({ key: KEY, json })).status);
    expect([statuses, server.runs]).toEqual([[422, 500, 201, 409], 3]);
  });

  it('frees the key for a refusal that came after an effect had been announced, too: it is an answer', async () => {
    const server = serverOf(gocardless, async (_request, context, run) => {
      await context.effectStarted();
      return Response.json({}, { status: run === 1 ? 422 : 201 });
    });
    expect([(await server.send({ key: KEY })).status, (await server.send({ key: KEY })).status]).toEqual([422, 201]);
  });

  it('says that the answer was not kept where it names nothing', async () => {
    const server = serverOf(gocardless, () => new Response(null, { status: 204 }));
    await server.send({ key: KEY });
    expect(await all(await server.send({ key: KEY }))).toMatchObject([409, { error: { errors: [{ reason: 'idempotency_result_unavailable' }] }, original_status: 204 }]);
  });
});

describe('60: azure', () => {
  it('says accepted of every answer under a key, and repeats it', async () => {
    const server = serverOf(azure);
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      expect(await all(await server.send({ key: KEY }), 'repeatability-result')).toEqual([201, { charges: { id: 'CH1' } }, 'accepted']);
    }
    expect(server.runs).toBe(1);
  });

  it('refuses a key that is older than its window with 412, whether it knew it or not', async () => {
    const server = serverOf(azure);
    const firstSentAt = server.clock.now();
    await server.send({ key: KEY, firstSentAt });
    await server.clock.advance(azure.keyWindow + 1);
    expect(await all(await server.send({ key: KEY, firstSentAt }), 'repeatability-result')).toMatchObject([412, { error: { code: 'idempotency_key_expired' } }, 'rejected']);
    await server.clock.advance(azure.keyWindow);
    expect((await server.send({ key: keyOf('never seen'), firstSentAt })).status).toBe(412);
    expect((await server.send({ key: keyOf('fresh') })).status).toBe(201);
    expect(server.runs).toBe(2);
  });

  it('refuses what does not fit together with 400: another body, no GUID, no date, one header of two', async () => {
    const server = serverOf(azure);
    await server.send({ key: KEY });
    const date = new Date(server.clock.now()).toUTCString();
    const misfits = [
      { key: KEY, json: { amount: 1 } },
      { headers: { 'repeatability-request-id': 'no-guid', 'repeatability-first-sent': date } },
      { headers: { 'repeatability-request-id': `"${KEY} "`, 'repeatability-first-sent': date } },
      { headers: { 'repeatability-request-id': KEY, 'repeatability-first-sent': '2026-02-03T04:05:06Z' } },
      { headers: { 'repeatability-request-id': KEY } },
      { headers: { 'repeatability-first-sent': date } },
    ];
    for (const misfit of misfits) expect((await all(await server.send(misfit), 'repeatability-result')).filter((_, at) => at !== 1)).toEqual([400, 'rejected']);
    expect(server.runs).toBe(1);
  });

  it('executes 5xx again, repeats 4xx, and says 409 of a request that runs', async () => {
    const server = serverOf(azure, (_request, _context, run) => Response.json({ run }, { status: [503, 404][run - 1] ?? 201 }));
    expect((await server.send({ key: KEY })).status).toBe(503);
    expect(await all(await server.send({ key: KEY }))).toEqual([404, { run: 2 }]);
    expect(await all(await server.send({ key: KEY }))).toEqual([404, { run: 2 }]);
    expect(await all(await whileRunning(azure), 'repeatability-result')).toMatchObject([409, { error: { code: 'idempotency_in_progress' } }, 'accepted']);
  });

  it('answers 501 to a key where it enforces none, instead of ignoring it; reads may carry one', async () => {
    const server = serverOf(azure, undefined, { methods: ['POST'] });
    expect(await all(await server.send({ key: KEY, method: 'DELETE' }), 'repeatability-result')).toMatchObject([501, { error: { code: 'idempotency_unsupported' } }, 'rejected']);
    expect(server.runs).toBe(0);
    expect((await server.send({ method: 'DELETE' })).status).toBe(201);
    expect((await server.send({ key: KEY, method: 'GET' })).status).toBe(201);
  });
});

describe('60: paypal', () => {
  it('repeats the latest status where the application tells it, and the first answer where it does not', async () => {
    const asked: unknown[] = [];
    const latest = async ({ key, name, scope, stored }: { key: string; name: string; scope: string; stored: Response | undefined }): Promise<Response | undefined> => {
      asked.push([scope, name, key, await stored?.json()]);
      return asked.length === 1 ? Response.json({ status: 'REFUNDED' }) : undefined;
    };
    const server = serverOf(paypal, () => Response.json({ status: 'COMPLETED' }, { status: 201 }), { latest });
    expect(await all(await server.send({ key: KEY }))).toEqual([201, { status: 'COMPLETED' }]);
    expect(await all(await server.send({ key: KEY }))).toEqual([200, { status: 'REFUNDED' }]);
    expect(await all(await server.send({ key: KEY }))).toEqual([201, { status: 'COMPLETED' }]);
    expect(asked).toEqual(Array.from({ length: 2 }, () => ['acme', 'charge', KEY, { status: 'COMPLETED' }]));
    expect(server.runs).toBe(1);
  });

  it('repeats it also when the first answer was not kept, and the first answer when the application fails', async () => {
    const failures: unknown[] = [];
    const gone = serverOf(paypal, undefined, { maxAnswerBytes: 1, latest: ({ stored }) => Response.json({ kept: stored !== undefined }) });
    await gone.send({ key: KEY });
    expect(await all(await gone.send({ key: KEY }))).toEqual([200, { kept: false }]);
    const broken = serverOf(paypal, undefined, { latest: () => Promise.reject(new Error('no ledger')), on: { failed: error => failures.push(error) } });
    await broken.send({ key: KEY });
    expect([(await broken.send({ key: KEY })).status, failures]).toEqual([201, [new Error('no ledger')]]);
  });

  it('is not asked in other dialects', async () => {
    const server = serverOf(ietf, undefined, { latest: () => Promise.reject(new Error('never asked')), on: { failed: error => expect.fail(String(error)) } });
    await server.send({ key: KEY });
    expect((await server.send({ key: KEY })).status).toBe(201);
  });

  it('has its own words for a request that runs, and for another request', async () => {
    expect(await all(await whileRunning(paypal))).toMatchObject([409, { name: 'RESOURCE_CONFLICT', debug_id: expect.any(String), details: [{ issue: 'PREVIOUS_REQUEST_IN_PROGRESS' }] }]);
    const server = serverOf(paypal);
    await server.send({ key: KEY });
    expect(await all(await server.send({ key: KEY, json: { amount: 1 } }))).toMatchObject([422, { name: 'UNPROCESSABLE_ENTITY', details: [{ issue: 'DUPLICATE_REQUEST_ID' }] }]);
  });
});

describe('60: adyen', () => {
  it('says 409, 704 and Transient-Error of a request that runs', async () => {
    expect(await all(await whileRunning(adyen), 'transient-error')).toMatchObject([409, { status: 409, errorCode: '704', message: 'request already processed or in progress', errorType: 'validation' }, 'true']);
  });

  it('says 422 to another body, and not to come back', async () => {
    const server = serverOf(adyen);
    await server.send({ key: KEY });
    expect(await all(await server.send({ key: KEY, json: { amount: 1 } }), 'transient-error')).toMatchObject([422, { errorCode: 'idempotency_key_reused' }, 'false']);
  });

  it('says 703 when keys cannot be checked', async () => {
    const server = serverOf(adyen, undefined, { store: { ...memoryDedupStore(), claim: () => Promise.reject(new Error('down')) }, clock: { now: () => 0, sleep: () => Promise.resolve() } });
    expect(await all(await server.send({ key: KEY }), 'transient-error')).toMatchObject([503, { errorCode: '703', errorType: 'internal' }, 'true']);
  });

  it('echoes the key on every answer, as stripe does, and others do not', async () => {
    for (const [profile, echoed] of [[adyen, KEY], [stripe, KEY], [ietf, null]] as const) {
      const server = serverOf(profile, (_request, _context, run) => Response.json({}, { status: run === 1 ? 503 : 201 }));
      const answers = [await server.send({ key: KEY }), await server.send({ key: KEY }), await server.send({ key: KEY, json: { amount: 1 } })];
      expect(answers.map(({ headers }) => headers.get('idempotency-key'))).toEqual([echoed, echoed, echoed]);
    }
  });
});

describe('60: square', () => {
  it('takes the key from the body, and repeats the first success', async () => {
    const server = serverOf(square);
    for (let attempt = 1; attempt <= 2; attempt += 1) expect(await all(await server.send({ key: KEY }))).toEqual([201, { charges: { id: 'CH1' } }]);
    expect(server.runs).toBe(1);
  });

  it('gives the handler the body as it came', async () => {
    const server = serverOf(square, async request => Response.json(await request.json()));
    expect(await all(await server.send({ key: KEY }))).toEqual([200, { idempotency_key: KEY, amount: 4200 }]);
  });

  it('has its own words for a missing, an unreadable and a reused key', async () => {
    const server = serverOf(square);
    await server.send({ key: KEY });
    const codeOf = async (sent: Sent): Promise<unknown[]> => {
      const response = await server.send(sent);
      const { errors } = (await response.json()) as { errors: { category: string; code: string; field: string }[] };
      return [response.status, ...errors.flatMap(({ category, code, field }) => [category, code, field])];
    };
    expect(await codeOf({})).toEqual([400, 'INVALID_REQUEST_ERROR', 'MISSING_REQUIRED_PARAMETER', 'idempotency_key']);
    expect(await codeOf({ json: { idempotency_key: 7 } })).toEqual([400, 'INVALID_REQUEST_ERROR', 'INVALID_VALUE', 'idempotency_key']);
    expect(await codeOf({ key: 'x'.repeat(46) })).toEqual([400, 'INVALID_REQUEST_ERROR', 'INVALID_VALUE', 'idempotency_key']);
    expect(await codeOf({ key: KEY, json: { amount: 1 } })).toEqual([400, 'INVALID_REQUEST_ERROR', 'IDEMPOTENCY_KEY_REUSED', 'idempotency_key']);
    expect(server.runs).toBe(1);
  });

  it('refuses a body that is too large to look for the key in', async () => {
    const server = serverOf(square, undefined, { maxRequestBytes: 20 });
    expect((await server.send({ key: KEY })).status).toBe(413);
    expect(server.runs).toBe(0);
  });
});

describe('60: stripe v2', () => {
  it('drives failed work on under the same key, and shows a success as it is now', async () => {
    const server = serverOf(stripe({ version: 2 }), (_request, _context, run) => Response.json({ run }, { status: [402, 500, 200][run - 1] ?? 200 }), { latest: () => Response.json({ run: 'now' }) });
    const answers = [];
    for (let attempt = 1; attempt <= 4; attempt += 1) answers.push(await all(await server.send({ key: KEY })));
    expect(answers).toEqual([[402, { run: 1 }], [500, { run: 2 }], [200, { run: 3 }], [200, { run: 'now' }]]);
    expect(server.runs).toBe(3);
  });

  it('enforces keys on DELETE too, and v1 does not', async () => {
    const [v1, v2] = [serverOf(stripe), serverOf(stripe({ version: 2 }))];
    for (const server of [v1, v2]) for (let attempt = 1; attempt <= 2; attempt += 1) await server.send({ key: KEY, method: 'DELETE' });
    expect([v1.runs, v2.runs]).toEqual([2, 1]);
  });
});

it('58: preflights of a dialect allow both of its headers', async () => {
  const handler = withCors(() => new Response(), { origins: '*', profile: azure });
  const preflight = new Request('https://api.test/', { method: 'OPTIONS', headers: { origin: 'https://shop.test', 'access-control-request-method': 'POST' } });
  expect((await handler(preflight)).headers.get('access-control-allow-headers')).toBe('Repeatability-Request-ID, Repeatability-First-Sent, Content-Type, If-Match, If-None-Match');
});

it('58: a page may read the verdicts of every dialect', async () => {
  const server = serverOf(adyen);
  const answer = await server.dedup.handle(requestOf(adyen, { key: KEY, headers: { origin: 'https://shop.test' } }, 0), () => new Response(), { name: 'charge' });
  expect(answer.headers.get('access-control-expose-headers')).toContain('Transient-Error, Repeatability-Result');
});

it('a server remembers keys for as long as its dialect promises', async () => {
  for (const profile of [paypal, adyen]) {
    const server = serverOf(profile);
    await server.send({ key: KEY });
    await server.clock.advance(profile.keyWindow - 1);
    await server.send({ key: KEY });
    await server.clock.advance(2);
    expect([server.runs, (await server.send({ key: KEY })).status, server.runs]).toEqual([1, 201, 2]);
  }
});
