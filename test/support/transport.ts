/** One send as the transport saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly key: string | null;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly text: string;
  /** When it was sent, on the clock of the test. */
  readonly at: number;
}

/** What a step answers: a Response, a function of the request, or an error to fail with; 'hang' never answers. */
export type Step = Response | Error | 'hang' | ((request: Request, seen: SeenRequest) => Response | Promise<Response>);

export interface Transport {
  readonly fetch: (request: Request, init?: RequestInit) => Promise<Response>;
  readonly seen: readonly SeenRequest[];
  /** The distinct keys that were sent. */
  readonly keys: readonly (string | null)[];
}

/** Network errors as Node gives them. */
export const networkError = (code = 'ECONNRESET'): TypeError => new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });

/** A transport that plays a script; the last step is repeated. */
export const scripted = (steps: readonly Step[], now: () => number = () => 0): Transport => {
  const seen: SeenRequest[] = [];
  return {
    seen,
    get keys() {
      return [...new Set(seen.map(({ key }) => key))];
    },
    fetch: async request => {
      const step = steps[Math.min(seen.length, steps.length - 1)];
      const { method, url, headers } = request;
      const body = new Uint8Array(await request.clone().arrayBuffer());
      const entry: SeenRequest = { method, url, headers, key: headers.get('idempotency-key'), body, text: new TextDecoder().decode(body), at: now() };
      seen.push(entry);
      if (step === 'hang') return new Promise((_, reject) => request.signal.addEventListener('abort', () => reject(request.signal.reason as Error)));
      if (step instanceof Error) throw step;
      if (step === undefined) throw new Error('The script has no step');
      return typeof step === 'function' ? step(request, entry) : step.clone();
    },
  };
};

/** A problem answer of a server that keeps the contract. */
export const problem = (status: number, code: string, extra: object = {}, headers: Record<string, string> = {}): Response => {
  const body = { type: `urn:samekey:problem:${code}`, code, status, ...extra };
  return Response.json(body, { status, headers: { 'content-type': 'application/problem+json', ...headers } });
};
