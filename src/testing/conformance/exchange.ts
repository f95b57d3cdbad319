import { GUARD_HEADER, SCRIPT_HEADER, TENANT_HEADER, writeScript, type Script, type Step } from './scenario.js';
import type { Server, Words } from './target.js';

/** A request of a case. What is not said is as in every other request of its scenario, so that two of them are repeats. */
export interface Sent {
  /** null: none. @default the scenario's own */
  readonly key?: string | null | undefined;
  /** @default '{"amount":4200}' */
  readonly body?: BodyInit | null | undefined;
  /** Content type of the body; null: none. @default 'application/json', and what the platform says for a form */
  readonly type?: string | null | undefined;
  /** @default 'POST' */
  readonly method?: string | undefined;
  /** Path and query. @default '/charges' */
  readonly path?: string | undefined;
  /** @default 'acme' */
  readonly tenant?: string | undefined;
  /** Turned away by the guard with this status. @default not at all */
  readonly guard?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** What this request's run does. @default the scenario's next step */
  readonly steps?: readonly Step[] | undefined;
  /** @default the server that the case has opened */
  readonly to?: Server | undefined;
}

/** An answer that was read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The parsed body; undefined where it is not JSON. */
  readonly json: unknown;
}

/** Where servers are that have no address. */
export const ORIGIN: string = 'https://shop.example';

const CHARGE = '{"amount":4200}';

const jsonOf = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
};

export const readAnswer = async (response: Response): Promise<Answer> => {
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes, json: jsonOf(bytes) };
};

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** `key` is that of requests which say no other. */
export const requestOf = (script: Script, key: string, { header }: Words, sent: Sent): Request => {
  const { method = 'POST', path = '/charges', body = CHARGE, tenant = 'acme', guard, to, signal } = sent;
  const type = sent.type === undefined && !(body instanceof FormData) && body !== null ? 'application/json' : sent.type;
  const headers = new Headers([
    [SCRIPT_HEADER, writeScript(script)],
    [TENANT_HEADER, tenant],
    ...(sent.key === null ? [] : [[header, sent.key ?? key] satisfies [string, string]]),
    ...(type ? [['content-type', type] satisfies [string, string]] : []),
    ...(guard === undefined ? [] : [[GUARD_HEADER, String(guard)] satisfies [string, string]]),
    ...Object.entries(sent.headers ?? {}),
  ]);
  const init = { method, headers, redirect: 'manual' as const, ...(signal && { signal }), ...(!BODILESS.has(method) && { body }) };
  return new Request(`${to?.origin ?? ORIGIN}${path}`, init);
};
