import type { StoredAnswer } from '../record.js';
import { detailOf, originalOf, refuseWith, type Refusal, type Style } from './style.js';
import { WORDINGS } from './wordings.js';

const typeOf = (status: number): string => (status >= 500 ? 'gocardless' : status === 409 ? 'invalid_state' : 'invalid_api_usage');

const errorOf = (status: number, message: string, errors: readonly object[], refusal?: Refusal): object => ({
  error: { type: typeOf(status), code: status, message, request_id: refusal?.operationRef, errors },
});

/** The id in an answer, which holds its resource as `{ payments: { id, … } }`. */
const resourceIdOf = ({ body }: StoredAnswer): string | undefined => {
  try {
    const json = JSON.parse(new TextDecoder().decode(body ?? new Uint8Array())) as Record<string, unknown>;
    const ids = [json, ...Object.values(json)].map(part => (part as { id?: unknown } | null)?.id);
    return ids.find((id): id is string => typeof id === 'string');
  } catch {
    return undefined;
  }
};

const ALREADY_CREATED = 'A resource has already been created with this idempotency key';

/** GoCardless's `{ error: { type, code, errors: [{ reason, message, links }] } }`. */
export const gocardless: Style = {
  refuse(refusal) {
    const { status } = WORDINGS[refusal.code];
    const message = detailOf(refusal);
    return refuseWith(refusal, { status, body: { ...errorOf(status, message, [{ reason: refusal.code, message }], refusal), ...originalOf(refusal) } });
  },
  mark: () => [],
  conflict(answer) {
    const id = resourceIdOf(answer);
    if (id === undefined) return undefined;
    const error = { reason: 'idempotent_creation_conflict', message: ALREADY_CREATED, links: { conflicting_resource_id: id } };
    const body = errorOf(409, ALREADY_CREATED, [error]);
    return Response.json(body, { status: 409, headers: { 'cache-control': 'no-store' } });
  },
};
