import { createHash } from 'node:crypto';

/** A charge that happened. Two of them for one order is what must never be. */
export interface Effect {
  readonly id: string;
  readonly key: string | undefined;
  readonly order: unknown;
  readonly amount: unknown;
}

/** An answer as bytes, so that a replay can be compared byte by byte. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Entry {
  readonly bytes: string;
  /** Undefined while the execution runs. */
  answer?: Answer;
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export const problem = (status: number, code: string, title: string, headers: Readonly<Record<string, string>> = {}): Answer => ({
  status,
  headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store', ...headers },
  body: JSON.stringify({ type: `urn:samekey:problem:${code}`, title, status, code }),
});

/**
 * What a payment provider knows. Written apart from samekey's own dedup engine on purpose: a mistake that both shared would
 * hide itself.
 */
export const createLedger = (): {
  readonly effects: readonly Effect[];
  /** Answers a request under `key`; `work` is awaited between the claim and the effect, while others get 409. */
  charge(key: string | undefined, body: Uint8Array, work?: () => Promise<void>): Promise<Answer>;
} => {
  const effects: Effect[] = [];
  const entries = new Map<string, Entry>();

  const execute = (key: string | undefined, body: Uint8Array): Answer => {
    const { order, amount } = JSON.parse(new TextDecoder().decode(body)) as { order?: unknown; amount?: unknown };
    const effect = { id: `ch_${effects.length + 1}`, key, order, amount };
    effects.push(effect);
    return {
      status: 201,
      headers: { 'content-type': 'application/json', location: `/charges/${effect.id}` },
      body: JSON.stringify({ id: effect.id, order, amount }),
    };
  };

  const known = ({ bytes, answer }: Entry, body: Uint8Array): Answer => {
    if (bytes !== sha256(body)) return problem(422, 'idempotency_key_reused', 'Idempotency-Key is already used');
    if (!answer) return problem(409, 'idempotency_in_progress', 'A request is outstanding for this Idempotency-Key', { 'retry-after': '1' });
    return { ...answer, headers: { ...answer.headers, 'idempotent-replayed': 'true' } };
  };

  return {
    effects,
    async charge(key, body, work) {
      const found = key === undefined ? undefined : entries.get(key);
      if (found) return known(found, body);
      const entry: Entry = { bytes: sha256(body) };
      if (key !== undefined) entries.set(key, entry);
      await work?.();
      return (entry.answer = execute(key, body));
    },
  };
};
