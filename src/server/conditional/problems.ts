import { etagOf, type Version } from './etag.js';

/** The stable codes of refusals that are about preconditions. */
export type PreconditionCode = 'precondition_invalid' | 'precondition_failed' | 'precondition_required' | 'resource_missing';

interface Wording {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
}

const WORDINGS: Readonly<Record<PreconditionCode, Wording>> = {
  precondition_invalid: {
    status: 400, title: 'The precondition cannot be read',
    detail: 'If-Match and If-None-Match take * or a list of entity tags in double quotes, as in "7". Nothing was changed.',
  },
  resource_missing: {
    status: 404, title: 'The resource does not exist',
    detail: 'There is nothing to change.',
  },
  precondition_failed: {
    status: 412, title: 'The resource is not as the precondition says',
    detail:
      'Nothing was changed by this request. Somebody else has changed the resource, or an earlier attempt of this request did and its answer was lost: ' +
      'read the resource and compare. If it is as you wanted it, you are done; if not, apply your change to what it is now.',
  },
  precondition_required: {
    status: 428, title: 'A precondition is required',
    detail: 'Nothing was changed. Send If-Match with the ETag that you read, or If-None-Match: * to create what does not exist.',
  },
};

/** RFC 9457. Where the resource exists, the ETag says as what. */
export const problemOf = (code: PreconditionCode, current?: Version): Response => {
  const { status, title, detail } = WORDINGS[code];
  const body = { type: `urn:samekey:problem:${code}`, title, status, detail, code, retryable: false };
  const headers = { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store', ...(current !== undefined && { ETag: etagOf(current) }) };
  return new Response(JSON.stringify(body), { status, headers });
};
